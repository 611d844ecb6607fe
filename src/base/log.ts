/** The log interface: fields first, then a message. The command decides how it is written. */

export type LogFields = Readonly<Record<string, unknown>>;

export type Log = {
  readonly debug: (fields: LogFields, message: string) => void;
  readonly info: (fields: LogFields, message: string) => void;
  readonly warn: (fields: LogFields, message: string) => void;
  readonly error: (fields: LogFields, message: string) => void;
  /** The same log with these fields added to each line. */
  readonly with: (fields: LogFields) => Log;
};

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

const ignore = () => undefined;

/** A log that discards everything, for commands and tests. */
export const silentLog: Log = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  with: () => silentLog,
};
