/** `vault audit verify`, `checkpoint` and `public-key`: whether the audit log is what was recorded, and how to show it later. */
import { OperatorError } from '../base/operator-error.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { publicKeyPem } from '../crypto/ed25519.ts';
import { localCli } from '../domain/audit.ts';
import {
  type Checkpoint,
  checkpointKey,
  makeCheckpoint,
  readCheckpoint,
  replaceCheckpointKey,
} from '../domain/audit-checkpoint.ts';
import { type ChainReport, verifyChain } from '../domain/audit-verification.ts';
import { command } from './command.ts';
import { readInput } from './input-file.ts';
import { jsonText } from './output.ts';
import { withVault } from './with-vault.ts';

export const verifyCommand = command({
  name: 'audit verify',
  description: 'look whether any event of the audit log was changed, removed or put in; exit code 1 if so',
  examples: [
    { does: 'Verify the whole log', line: 'vault audit verify' },
    {
      does: 'Also against what was kept elsewhere',
      line: 'vault audit verify --checkpoint checkpoint.txt',
    },
  ],
  options: {
    checkpoint: {
      type: 'string',
      valueHint: 'FILE',
      multiple: true,
      description: 'hold the log against a checkpoint that was kept elsewhere; - is standard input',
    },
    json: { type: 'boolean', description: 'print JSON, for programs' },
  },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      const checkpoints: Checkpoint[] = [];
      for (const path of args.checkpoint) {
        const text = (await readInput(path, terminal)).toString();
        checkpoints.push(await readCheckpoint(vault, text, path === '-' ? 'standard input' : path));
      }
      const report = await verifyChain(vault, checkpoints);
      const text = args.json ? jsonText(reportView(report, checkpoints)) : reportText(report, checkpoints);
      terminal.stdout.write(text);
      if (report.faultCount === 0) return;
      throw new OperatorError('the audit log is not what was recorded', {
        hint: 'Whoever did it could write to vault.db. Keep a copy of it, and see "When something was stolen" in docs/security.md.',
      });
    }),
});

export const checkpointCommand = command({
  name: 'audit checkpoint',
  description: 'print where the audit log stands now, signed, to be kept elsewhere',
  examples: [
    {
      does: 'Write a checkpoint to keep on another machine',
      line: 'vault audit checkpoint > checkpoint.txt',
    },
  ],
  options: {
    'new-key': { type: 'boolean', description: 'sign with a new key from now on' },
  },
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      if (args['new-key']) await replaceCheckpointKey(vault, localCli);
      terminal.stdout.write(await makeCheckpoint(vault, localCli));
    }),
});

export const publicKeyCommand = command({
  name: 'audit public-key',
  description: 'print the public key by which anybody can check the signature of a checkpoint, as PEM',
  examples: [
    { does: 'Keep the key by which checkpoints are checked', line: 'vault audit public-key > audit-key.pem' },
  ],
  options: {},
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      terminal.stdout.write(publicKeyPem(await checkpointKey(vault, localCli)));
    }),
});

function reportView({ events, first, last, faults, faultCount }: ChainReport, checkpoints: Checkpoint[]) {
  return {
    whole: faultCount === 0,
    events,
    first_id: first ?? null,
    last_id: last?.id ?? null,
    last_hash: last?.link.toString('hex') ?? null,
    checkpoints: checkpoints.map(({ id, at }) => ({ id, at: formatTimestamp(at) })),
    fault_count: faultCount,
    faults,
  };
}

function reportText(
  { events, first, last, faults, faultCount }: ChainReport,
  checkpoints: Checkpoint[],
): string {
  const range = last === undefined ? '' : `, from ${first} to ${last.id}`;
  const lines = faults.map(({ message }) => `WRONG: ${message}`);
  if (faultCount > faults.length) lines.push(`… and ${faultCount - faults.length} more`);
  if (faultCount === 0) {
    lines.push(`The audit log is whole: ${events} events${range}.`);
    for (const { id, at } of checkpoints)
      lines.push(`It agrees with the checkpoint of event ${id}, ${formatTimestamp(at)}.`);
    if (last !== undefined) lines.push(`It ends with ${last.link.toString('hex')}.`);
  } else {
    lines.push(`${events} events${range} were looked at.`);
  }
  return `${lines.join('\n')}\n`;
}
