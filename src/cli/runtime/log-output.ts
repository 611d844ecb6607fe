/** Writes the log to stderr: as JSON lines, or one readable line per event on a terminal. */
import { styleText } from 'node:util';
import { type DestinationStream, type Logger, pino } from 'pino';
import { type Log, type LogLevel, logLevels } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { escapedJson } from '../../base/printable-text.ts';
import type { World } from '../../base/world.ts';
import { readableLine } from './log-line.ts';
import { named } from './program-name.ts';

const stderr = 2;

/** A log whose level can change, also for the logs that `with` has derived from it. */
export type ServerLog = Log & { readonly setLevel: (level: LogLevel) => void };

/** The level of a log and of those derived from it. */
type Threshold = { level: LogLevel };

/** Opens a log at this level. `forPerson`: stderr is a terminal. */
export function openLog(
  level: LogLevel,
  { forPerson, world }: { readonly forPerson: boolean; readonly world: World },
): ServerLog {
  const threshold: Threshold = { level };
  const inColor = styleText('red', ' ', { stream: process.stderr }) !== ' ';
  const line = forPerson ? (json: string) => readableLine(json, { color: inColor }) : undefined;
  const destination = bufferedDestination(world, line);
  const logger = pino<never>(
    {
      level: 'debug',
      base: null,
      timestamp: timeOf(world),
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error) => describeError(error, threshold.level === 'debug') },
    },
    destination,
  );
  return {
    ...logBy(logger, threshold),
    setLevel: (next) => {
      threshold.level = next;
    },
  };
}

function logBy(logger: Logger, threshold: Threshold): Log {
  const at = (level: Exclude<LogLevel, 'silent'>): Log['info'] => {
    const rank = logLevels.indexOf(level);
    return (fields, message) => {
      if (rank >= logLevels.indexOf(threshold.level)) logger[level](fields, message);
    };
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => logBy(logger.child(fields), threshold),
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
function bufferedDestination(world: World, line: ((json: string) => string) | undefined): DestinationStream {
  const destination = pino.destination({ dest: stderr, sync: true });
  let lines = '';
  const flush = () => {
    if (lines !== '') destination.write(lines);
    lines = '';
  };
  process.once('exit', flush);
  return {
    write: (json) => {
      if (lines === '') void world.turn().then(flush);
      lines += named(line === undefined ? escapedJson(json) : line(json));
    },
  };
}

/**
 * An error with its chain of causes and the hint for the operator. The stack is for developers: the log has it at level
 * debug; otherwise a bug is logged with the place that threw it.
 */
function describeError(error: unknown, withStack: boolean): unknown {
  if (!(error instanceof Error)) return error;
  return {
    type: error.name,
    message: error.message,
    ...(error instanceof OperatorError && error.hint !== undefined && { hint: error.hint }),
    ...(withStack ? { stack: error.stack } : placeOf(error)),
    ...(error.cause !== undefined && { cause: describeError(error.cause, withStack) }),
  };
}

/** Where a bug was thrown. What an operator can fix, and what the system refuses, needs no place in the source. */
function placeOf(error: Error): { readonly at?: string } {
  if (error instanceof OperatorError || 'code' in error) return {};
  const at = /^ +at (.+)$/m.exec(error.stack ?? '')?.[1];
  return at === undefined ? {} : { at };
}
