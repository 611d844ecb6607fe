/** `vault audit verify`, `checkpoint` and `public-key`: whether the audit log is what was recorded, and how to show it later. */
import { OperatorError } from '../../../base/operator-error.ts';
import { publicKeyPem } from '../../../crypto/ed25519.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  checkpointKey,
  makeCheckpoint,
  readCheckpoint,
  replaceCheckpointKey,
} from '../../../domain/audit/audit-checkpoint.ts';
import { verifyChain } from '../../../domain/audit/audit-verification.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { reportText, reportView } from './audit-report.ts';
import { readAll, verifyCopy } from './audit-verify-copy.ts';

export const verifyCommand = command({
  name: 'audit verify',
  description: 'look whether any event of the audit log was changed, removed or put in; exit code 1 if so',
  examples: [
    { does: 'Verify the whole log', line: 'vault audit verify' },
    {
      does: 'Also against what was kept elsewhere',
      line: 'vault audit verify --checkpoint checkpoint.txt',
    },
    {
      does: 'A copy, also where there is no vault',
      line: 'vault audit verify --file audit.jsonl',
    },
  ],
  options: {
    checkpoint: {
      type: 'string',
      valueHint: 'FILE',
      multiple: true,
      description: 'hold the log against a checkpoint that was kept elsewhere; - is standard input',
    },
    file: {
      type: 'string',
      valueHint: 'FILE',
      description: 'verify these lines of JSON, of an export or an audit file, and not the vault',
    },
    'public-key': {
      type: 'string',
      valueHint: 'FILE',
      description:
        'with --file: the key by which checkpoints are checked, as PEM (default: those of the vault)',
    },
    json: { type: 'boolean', description: 'print JSON, for programs' },
  },
  run: async (args, terminal) => {
    if (args.file !== undefined) {
      await verifyCopy(args.file, args, terminal);
      return;
    }
    if (args['public-key'] !== undefined) {
      throw new Misuse('--public-key is for --file', 'The vault has its keys itself: leave it out.');
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
      throw new OperatorError('the audit log is not what was recorded', {
        hint: 'Whoever did it could write to vault.db. Keep a copy of it, and see docs/how-to/respond-to-theft.md.',
      });
    });
  },
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
