/** `vault audit verify --file`: a copy of the audit log is verified where the vault is not, also by whoever does not trust it. */
import { createReadStream } from 'node:fs';
import { OperatorError } from '../../../base/operator-error.ts';
import { readPublicKeyPem } from '../../../crypto/ed25519.ts';
import {
  type Checkpoint,
  checkpointSignedBy,
  readCheckpoint,
} from '../../../domain/audit/audit-checkpoint.ts';
import { type ExportReport, verifyExport } from '../../../domain/audit/exported-audit-log.ts';
import { withVault } from '../../runtime/with-vault.ts';
import type { commonOptions } from '../../settings/settings.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { readInput, unreadable } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { reportText, reportView } from './audit-report.ts';

/** Events have a few hundred characters; those about thousands of certificates a million. */
const longestLine = 16 * 1024 * 1024;

type Given = Arguments<typeof commonOptions> & {
  readonly checkpoint: readonly string[];
  readonly 'public-key': string | undefined;
  readonly json: boolean;
};

/** Verifies the lines of the file, and prints what was found. Throws OperatorError where it is not what was recorded. */
export async function verifyCopy(path: string, args: Given, terminal: Terminal): Promise<void> {
  if (path === '-' && args.checkpoint.includes('-')) {
    throw new Misuse('--file and --checkpoint both read standard input', 'Name a file for one of them.');
  }
  const name = called(path);
  const checkpoints = await checkpointsFor(args, terminal);
  const report = await verifyExport(linesOf(path, terminal), checkpoints);
  if (report.events === 0) {
    throw new OperatorError(`${name} holds no audit events`, {
      hint: 'Name a file that "vault audit export" or --audit-file has written, as lines of JSON. CSV cannot be verified.',
    });
  }
  terminal.stdout.write(
    args.json ? jsonText(copyView(report, checkpoints)) : copyText(report, checkpoints, name),
  );
  if (report.faultCount === 0) return;
  throw new OperatorError(`${name} is not what was recorded`, {
    hint: 'An export of some events alone has gaps: verify one of all events, or of all between two times.',
  });
}

/** What was read of each of these files; the functions of checkpoints throw for what is none. */
export async function readAll(
  paths: readonly string[],
  terminal: Terminal,
  read: (text: string, name: string) => Checkpoint | Promise<Checkpoint>,
): Promise<Checkpoint[]> {
  const checkpoints: Checkpoint[] = [];
  for (const path of paths) {
    checkpoints.push(await read((await readInput(path, terminal)).toString(), called(path)));
  }
  return checkpoints;
}

/** The vault is opened only where its keys are needed. */
async function checkpointsFor(args: Given, terminal: Terminal): Promise<Checkpoint[]> {
  const { checkpoint: paths, 'public-key': keyFile } = args;
  if (keyFile !== undefined) {
    const key = readPublicKeyPem((await readInput(keyFile, terminal)).toString());
    if (key === undefined) {
      throw new OperatorError(`${keyFile} holds no public key of checkpoints`, {
        hint: 'Name a file that "vault audit public-key" has written.',
      });
    }
    return readAll(paths, terminal, (text, name) => checkpointSignedBy([key], text, name));
  }
  let checkpoints: Checkpoint[] = [];
  if (paths.length === 0) return checkpoints;
  await withVault(args, terminal, 'refuse', async (vault) => {
    checkpoints = await readAll(paths, terminal, (text, name) => readCheckpoint(vault, text, name));
  });
  return checkpoints;
}

async function* linesOf(path: string, { stdin }: Terminal): AsyncIterable<string> {
  const input = path === '-' ? stdin : createReadStream(path);
  let rest = '';
  try {
    for await (const text of input.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > longestLine) throw new Error('it has no lines');
      yield* lines;
    }
    yield rest;
  } catch (error) {
    throw unreadable(called(path), error);
  }
}

function called(path: string): string {
  return path === '-' ? 'standard input' : path;
}

function copyView(report: ExportReport, checkpoints: readonly Checkpoint[]) {
  const { unproved, repeated, others } = report;
  return {
    ...reportView(report, checkpoints),
    unproved_id: unproved ?? null,
    repeated_events: repeated,
    other_lines: others,
  };
}

function copyText(report: ExportReport, checkpoints: readonly Checkpoint[], name: string): string {
  const { unproved, repeated, others } = report;
  const notes = [
    unproved === undefined
      ? ''
      : `Event ${unproved} was taken as it stands: the one before it, which would show a change, is not there.\n`,
    repeated === 0 ? '' : `Events that stand there once more: ${repeated}.\n`,
    others === 0 ? '' : `Lines that are no event as the vault writes it: ${others}.\n`,
  ];
  return `${reportText(report, checkpoints, name)}${notes.join('')}`;
}
