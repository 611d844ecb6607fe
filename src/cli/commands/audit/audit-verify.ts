/** `vault audit verify`, `checkpoint` and `public-key`: verify the audit log and sign checkpoints of it. */
import { OperatorError } from '../../../base/operator-error.ts';
import { publicKeyPem } from '../../../crypto/ed25519.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  checkpointKey,
  makeCheckpoint,
  readCheckpoint,
  replaceCheckpointKey,
} from '../../../domain/audit/audit-checkpoint.ts';
import { type ChainReport, verifyChain } from '../../../domain/audit/audit-verification.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { reportText, reportView } from './audit-report.ts';
import { readAll, verifyCopy } from './audit-verify-copy.ts';

export const verifyCommand = command({
  name: 'audit verify',
  description: 'Detect modified, deleted or inserted audit events',
  examples: [
    { does: 'Verify the whole log; exit code 1 if it was changed', line: 'vault audit verify' },
    {
      does: 'Also verify against a checkpoint stored elsewhere',
      line: 'vault audit verify --checkpoint checkpoint.txt',
    },
    {
      does: 'Verify a copy, on a machine without the vault',
      line: 'vault audit verify --file audit.jsonl',
    },
  ],
  options: {
    checkpoint: {
      type: 'string',
      valueHint: 'FILE',
      multiple: true,
      description: 'verify the log against this checkpoint; - for standard input',
    },
    file: {
      type: 'string',
      valueHint: 'FILE',
      description: 'verify this export or audit file (JSON Lines) instead of the vault',
    },
    'public-key': {
      type: 'string',
      valueHint: 'FILE',
      description: 'with --file: the PEM public key that verifies checkpoints (default: from the vault)',
    },
    json: { type: 'boolean', description: 'print JSON' },
  },
  run: async (args, terminal) => {
    if (args.file !== undefined) {
      await verifyCopy(args.file, args, terminal);
      return;
    }
    if (args['public-key'] !== undefined) {
      throw new Misuse(
        '--public-key needs --file',
        'Without --file, the keys of the vault are used: remove --public-key.',
      );
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const checkpoints = await readAll(args.checkpoint, terminal, (text, name) =>
        readCheckpoint(vault, text, name),
      );
      const report = await verifyChain(vault, checkpoints);
      const text = args.json
        ? jsonText(reportView(report, checkpoints))
        : reportText(report, checkpoints, 'The audit log');
      terminal.stdout.write(text);
      if (report.faultCount === 0) return;
      throw new OperatorError('the audit log failed verification', { hint: hintFor(report) });
    });
  },
});

/** An older server that still ran after an upgrade is told from an attacker by its operator alone. */
function hintFor({ faults }: ChainReport): string {
  const theft = 'Keep a copy of vault.db and follow docs/how-to/respond-to-theft.md.';
  return faults.some(({ kind }) => kind === 'unchained' || kind === 'untagged')
    ? `If an older version of "vault serve" still ran after an upgrade, restart it with this version; it wrote these events.\nOtherwise someone with write access to vault.db changed it. ${theft}`
    : `Someone with write access to vault.db changed it. ${theft}`;
}

export const checkpointCommand = command({
  name: 'audit checkpoint',
  description: 'Print a signed checkpoint of the audit log',
  examples: [
    {
      does: 'Write a checkpoint to store on another machine',
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
  description: 'Print the public key that verifies checkpoints, as PEM',
  examples: [{ does: 'Save the public key of checkpoints', line: 'vault audit public-key > audit-key.pem' }],
  options: {},
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      terminal.stdout.write(publicKeyPem(await checkpointKey(vault, localCli)));
    }),
});
