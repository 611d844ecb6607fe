/** The executable: hands what the process was given to the command line, and its exit code back. */
import manifest from '../package.json' with { type: 'json' };
import { realWorld } from './base/world.ts';
import { reportError, run } from './cli/commands/run.ts';
import { keepMemoryOutOfCoreDumps } from './cli/runtime/core-dump.ts';
import {
  invokedPath,
  nameOutput,
  nameProcess,
  nameProgram,
  programName,
} from './cli/runtime/program-name.ts';
import type { Terminal } from './cli/terminal/terminal.ts';

// Only the vault's user may access the files that it creates.
process.umask(0o077);
keepMemoryOutOfCoreDumps();
nameProgram(process.argv0, process.env);
nameProcess(programName());

// The reader of the output may stop early (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

nameOutput(process.stderr);

const terminal: Terminal = {
  world: realWorld,
  environment: process.env,
  // Opened only by the commands that read it.
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  version: manifest.version,
  get executable() {
    return invokedPath(process.argv0, process.execPath, process.env);
  },
};

// An error that nothing caught is a bug, reported in a sentence; Node would print its source and stack.
process.on('uncaughtException', (error) => {
  process.exit(reportError(error, terminal));
});

run(process.argv.slice(2), terminal).then((exitCode) => {
  process.exitCode = exitCode;
});
