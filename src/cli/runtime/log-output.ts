/** Writes the log to stderr: as JSON lines, or in readable form on a terminal. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Log, LogLevel } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';

const stderr = 2;

/** Opens a log at this level. `forPerson`: stderr is a terminal. `worker` is added to each line. */
export async function openLog(
  level: LogLevel,
  {
    forPerson,
    world,
    worker,
  }: { readonly forPerson: boolean; readonly world: World; readonly worker?: number },
): Promise<Log> {
  const destination = forPerson ? await prettyDestination() : jsonDestination(world);
  const logger = pino<never>(
    {
      level,
      base: worker === undefined ? null : { worker },
      timestamp: timeOf(world),
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  );
  return logBy(logger);
}

function logBy(logger: Logger): Log {
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    with: (fields) => logBy(logger.child(fields)),
  };
}

/** Formats the `time` field, once per millisecond. */
function timeOf({ now }: World): () => string {
  let at: number | undefined;
  let field = '';
  return () => {
    const ms = now();
    if (ms !== at) field = `,"time":"${new Date(ms).toISOString()}"`;
    at = ms;
    return field;
  };
}

/** Buffers the lines of one turn of the event loop and writes them at its end or at process exit. */
function jsonDestination(world: World): DestinationStream {
  const destination = pino.destination({ dest: stderr, sync: true });
  let lines = '';
  const flush = () => {
    if (lines !== '') destination.write(lines);
    lines = '';
  };
  process.once('exit', flush);
  return {
    write: (line) => {
      if (lines === '') void world.turn().then(flush);
      lines += line;
    },
  };
}

async function prettyDestination(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  return pretty({ destination: stderr, sync: true, translateTime: 'SYS:HH:MM:ss', colorize: true });
}

/** An error with its chain of causes and the hint for the operator. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return {
    type: error.name,
    message: error.message,
    ...(error instanceof OperatorError && error.hint !== undefined && { hint: error.hint }),
    stack: error.stack,
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  };
}
