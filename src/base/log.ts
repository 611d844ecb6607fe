/** What the vault's parts say to the log: fields first, then a sentence. How it is written is the command's business. */

export type LogFields = Readonly<Record<string, unknown>>;

export type Log = {
  readonly debug: (fields: LogFields, message: string) => void;
  readonly info: (fields: LogFields, message: string) => void;
  readonly warn: (fields: LogFields, message: string) => void;
  readonly error: (fields: LogFields, message: string) => void;
  /** The same log, with these fields in each line. */
  readonly with: (fields: LogFields) => Log;
};

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

const ignore = () => undefined;

/** A log for commands and tests that have nobody to tell. */
export const silentLog: Log = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  with: () => silentLog,
};
