/** How the log is written: JSON lines on stderr, or readable lines where a person watches. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Log, LogLevel } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';

const stderr = 2;

/** A log at this level. `forPerson` says that stderr is a terminal; `worker` stands in each line of that worker. */
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

/** The field `time` of a line; of those in the same millisecond it is made once. */
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

/** The lines of one turn of the event loop are written together at its end, or at the end of the process. */
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

/** An error with the chain of its causes and with the hint for whoever runs the vault. */
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
