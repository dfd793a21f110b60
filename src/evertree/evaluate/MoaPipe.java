// A learner of MOA behind a pipe: requests come in on stdin, answers go out on stdout.
//
//   java -cp moa.jar MoaPipe.java LEARNER
//
// LEARNER is a learner and its options as MOA writes them: "trees.EFDT -g 500". All numbers are
// big-endian, as DataInputStream reads them. First the shape of the rows: an int d, an int for the
// number of classes, and for each feature an int, its number of categories (0: it is a number).
// The answer is the byte 1 once the learner is ready. Then requests, each a byte and d doubles:
//
//   1  label: the answer is an int, the class that is voted for, or -1 while there are no votes
//   2  insert: followed by an int, the class; there is no answer

import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import moa.classifiers.Classifier;
import moa.core.Utils;
import moa.options.ClassOption;

public final class MoaPipe {
    private static final int LABEL = 1;
    private static final int INSERT = 2;

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        // What MOA prints must not get between the answers.
        System.setOut(System.err);
        InstancesHeader header = readHeader(in);
        Classifier learner =
                (Classifier) ClassOption.cliStringToObject(arguments[0], Classifier.class, null);
        learner.setModelContext(header);
        learner.prepareForUse();
        out.writeByte(1);
        out.flush();
        for (int request = in.read(); request >= 0; request = in.read()) {
            Instance instance = readRow(in, header);
            if (request == LABEL) {
                double[] votes = learner.getVotesForInstance(instance);
                out.writeInt(Utils.sum(votes) > 0 ? Utils.maxIndex(votes) : -1);
                out.flush();
            } else if (request == INSERT) {
                instance.setClassValue(in.readInt());
                learner.trainOnInstance(instance);
            } else {
                throw new IOException("there is no request " + request);
            }
        }
    }

    private static Instance readRow(DataInputStream in, InstancesHeader header) throws IOException {
        double[] values = new double[header.numAttributes()];
        for (int j = 0; j < values.length - 1; j++) {
            values[j] = in.readDouble();
        }
        Instance instance = new DenseInstance(1.0, values);
        instance.setDataset(header);
        return instance;
    }

    private static InstancesHeader readHeader(DataInputStream in) throws IOException {
        int features = in.readInt();
        int classes = in.readInt();
        List<Attribute> attributes = new ArrayList<>();
        for (int j = 0; j < features; j++) {
            attributes.add(attribute("x" + j, in.readInt()));
        }
        attributes.add(attribute("y", classes));
        InstancesHeader header = new InstancesHeader(new Instances("stream", attributes, 0));
        header.setClassIndex(features);
        return header;
    }

    private static Attribute attribute(String name, int categories) {
        if (categories == 0) {
            return new Attribute(name);
        }
        List<String> values = new ArrayList<>();
        for (int value = 0; value < categories; value++) {
            values.add(Integer.toString(value));
        }
        return new Attribute(name, values);
    }
}
