// Runs a learner of MOA over a stream, test-then-train, and says how long it took.
//
//   java -cp moa.jar:. Moa STREAM LEARNER [WARM_UP_SECONDS [PREDICTIONS]]
//
// STREAM is a file of data.py's write_stream. LEARNER is a learner and its options as MOA writes
// them: "trees.EFDT -g 500", "trees.HoeffdingAdaptiveTree", "trees.HoeffdingTree -l MC".
//
// What is timed is fair to MOA: all instances lie in memory before the clock starts, the machine
// has been warmed up with another learner of the same kind on the same rows, and per row there is
// one getVotesForInstance and one trainOnInstance, in one thread. The answer is one line of JSON:
// rows, wall seconds, CPU seconds of that thread, and for comparison the CPU seconds that all rows
// would take at the speed of the first, cold pass: of that thread, and of all threads of the virtual
// machine, which compiles and collects beside it (0 without warm-up). PREDICTIONS gets one byte per
// row, the class that was voted for.

import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import moa.classifiers.Classifier;
import moa.core.Utils;
import moa.options.ClassOption;

public final class Moa {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final OperatingSystemMXBean PROCESS =
            ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private final InstancesHeader header;
    private final Instance[] instances;

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 2 || arguments.length > 4) {
            System.err.println("usage: Moa STREAM LEARNER [WARM_UP_SECONDS [PREDICTIONS]]");
            System.exit(2);
        }
        Moa stream = new Moa(Path.of(arguments[0]));
        double warmUpSeconds = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 0;
        double[] cold = stream.warmUp(arguments[1], warmUpSeconds);

        int rows = stream.instances.length;
        byte[] predictions = new byte[rows];
        Classifier learner = stream.prepare(arguments[1]);
        System.gc();
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < rows; i++) {
            predictions[i] = testThenTrain(learner, stream.instances[i]);
        }
        cpu = THREADS.getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;

        if (arguments.length > 3) {
            Files.write(Path.of(arguments[3]), predictions);
        }
        System.out.printf(
                Locale.ROOT,
                "{\"rows\": %d, \"wall_seconds\": %.6f, \"cpu_seconds\": %.6f, "
                        + "\"cold_cpu_seconds\": %.6f, \"cold_all_seconds\": %.6f}%n",
                rows,
                wall / 1e9,
                cpu / 1e9,
                cold[0] * rows,
                cold[1] * rows);
    }

    private static byte testThenTrain(Classifier learner, Instance instance) {
        // Before it has seen anything a learner has no votes; maxIndex makes class 0 of that.
        byte vote = (byte) Utils.maxIndex(learner.getVotesForInstance(instance));
        learner.trainOnInstance(instance);
        return vote;
    }

    /**
     * Works for this much CPU time; answers with the CPU seconds per row of the first, cold pass: of
     * this thread, and of all threads.
     */
    private double[] warmUp(String learnerAndOptions, double seconds) throws Exception {
        double[] cold = {0, 0};
        // By CPU time: on a busy machine, seconds of the wall clock would warm less.
        long end = THREADS.getCurrentThreadCpuTime() + (long) (seconds * 1e9);
        for (int pass = 0; THREADS.getCurrentThreadCpuTime() < end; pass++) {
            Classifier learner = prepare(learnerAndOptions);
            long cpu = THREADS.getCurrentThreadCpuTime();
            long all = PROCESS.getProcessCpuTime();
            int row = 0;
            while (row < instances.length) {
                testThenTrain(learner, instances[row++]);
                if (row % 100 == 0 && THREADS.getCurrentThreadCpuTime() >= end) {
                    break;
                }
            }
            if (pass == 0) {
                cold[0] = (THREADS.getCurrentThreadCpuTime() - cpu) / 1e9 / row;
                cold[1] = (PROCESS.getProcessCpuTime() - all) / 1e9 / row;
            }
        }
        return cold;
    }

    private Classifier prepare(String learnerAndOptions) throws Exception {
        Classifier learner =
                (Classifier)
                        ClassOption.cliStringToObject(learnerAndOptions, Classifier.class, null);
        learner.setModelContext(header);
        learner.prepareForUse();
        return learner;
    }

    // --- reading

    private Moa(Path path) throws IOException {
        try (InputStream file = new BufferedInputStream(Files.newInputStream(path), 1 << 20)) {
            ByteBuffer head = read(file, 3);
            int rows = Math.toIntExact(head.getLong());
            int features = Math.toIntExact(head.getLong());
            header = header(read(file, features), features, head.getLong());
            double[][] values = new double[rows][features + 1];
            for (double[] row : values) {
                ByteBuffer numbers = read(file, features);
                for (int j = 0; j < features; j++) {
                    row[j] = numbers.getDouble();
                }
            }
            instances = new Instance[rows];
            for (int i = 0; i < rows; i++) {
                values[i][features] = read(file, 1).getLong();
                instances[i] = new DenseInstance(1.0, values[i]);
                instances[i].setDataset(header);
            }
        }
    }

    private static ByteBuffer read(InputStream file, int numbers) throws IOException {
        byte[] bytes = file.readNBytes(8 * numbers);
        if (bytes.length < 8 * numbers) {
            throw new IOException("the stream ends too early: it is not whole");
        }
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static InstancesHeader header(ByteBuffer categories, int features, long classes) {
        List<Attribute> attributes = new ArrayList<>();
        for (int j = 0; j < features; j++) {
            attributes.add(attribute("x" + j, categories.getLong()));
        }
        attributes.add(attribute("y", classes));
        InstancesHeader header = new InstancesHeader(new Instances("stream", attributes, 0));
        header.setClassIndex(features);
        return header;
    }

    private static Attribute attribute(String name, long categories) {
        if (categories == 0) {
            return new Attribute(name);
        }
        List<String> values = new ArrayList<>();
        for (long value = 0; value < categories; value++) {
            values.add(Long.toString(value));
        }
        return new Attribute(name, values);
    }
}
