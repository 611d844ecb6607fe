/** How tests start Java: their programs end within a second, before an optimizing compiler pays off. */
const flags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto'];

/** Arguments in front of those of `java`. */
export const quickJava: readonly string[] = flags;

/** Arguments of keytool and of other programs that run in Java. */
export const quickKeytool: readonly string[] = flags.map((flag) => `-J${flag}`);

/** Variables for a program that starts keytool itself. Java then reports them on stderr. */
export const quickVariables: Readonly<Record<string, string>> = { JAVA_TOOL_OPTIONS: flags.join(' ') };
