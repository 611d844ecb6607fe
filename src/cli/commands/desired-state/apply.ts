/** `vault apply`: shows the changes between the vault and a desired-state file, and makes them. */
import { dirname, resolve } from 'node:path';
import { OperatorError } from '../../../base/operator-error.ts';
import type { Secret } from '../../../base/secret.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { desiredStateSchema, type StateIssue } from '../../../domain/desired-state/desired-state.ts';
import { applyChanges } from '../../../domain/desired-state/state-application.ts';
import { stateIssues } from '../../../domain/desired-state/state-issues.ts';
import { type Change, type PlanOptions, planChanges } from '../../../domain/desired-state/state-plan.ts';
import { checkChanges, type PreparedChange } from '../../../domain/desired-state/state-preparation.ts';
import { readVaultState } from '../../../domain/desired-state/vault-state.ts';
import type { Vault } from '../../../domain/vault.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { allSettingsInUse } from '../../settings/recorded-settings.ts';
import type { commonOptions, Settings } from '../../settings/settings.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { askYes } from '../../terminal/prompt.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import {
  draftKeyFiles,
  keyFileIssue,
  publishKeyFiles,
  recoverKeyFile,
  requireDrafts,
} from '../audit/key-files.ts';
import { changesJson, changesText } from './change-report.ts';
import { type DesiredDocument, largestDocument, readDesiredDocument } from './desired-document.ts';
import { type Resolved, resolveReferences } from './desired-references.ts';

const options = {
  file: {
    type: 'string',
    short: 'f',
    valueHint: 'FILE',
    description: 'the desired state in YAML or JSON; - for standard input',
  },
  'dry-run': { type: 'boolean', description: 'show the changes without making them' },
  'exit-code': {
    type: 'boolean',
    description: 'with --dry-run: exit with code 1 if anything would change',
  },
  prune: {
    type: 'boolean',
    description: 'also remove what the file does not list, and revoke API keys it does not list',
  },
  yes: {
    type: 'boolean',
    description: 'do not ask for confirmation; required to remove anything without a terminal',
  },
  'key-dir': {
    type: 'string',
    valueHint: 'DIR',
    description: 'a directory for the secrets of new API keys that have no secret_file',
  },
  json: { type: 'boolean', description: 'print JSON' },
  schema: { type: 'boolean', description: 'print the JSON Schema of the file and exit' },
} as const;

type Given = Arguments<typeof options & typeof commonOptions>;

export const applyCommand = command({
  name: 'apply',
  description: 'Apply a desired state from a file',
  examples: [
    { does: 'Show what would change', line: 'vault apply -f desired.yaml --dry-run' },
    { does: 'Apply the file', line: 'vault apply -f desired.yaml' },
    {
      does: 'Apply the file in a pipeline, and remove everything it does not list',
      line: 'vault apply -f desired.yaml --prune --yes',
    },
    {
      does: 'Write the JSON Schema, for completion and checks in an editor',
      line: 'vault apply --schema > vault.schema.json',
    },
  ],
  options,
  run: async (args, terminal) => {
    if (args.schema) {
      terminal.stdout.write(jsonText(desiredStateSchema()));
      return;
    }
    const { file } = args;
    if (file === undefined) throw new Misuse('--file is missing', 'Try: vault apply --help');
    if (args['exit-code'] && !args['dry-run']) {
      throw new Misuse('--exit-code needs --dry-run', 'Add --dry-run or remove --exit-code.');
    }
    const name = file === '-' ? 'standard input' : file;
    const bytes = await readInput(file, terminal, largestDocument);
    const document = await readDesiredDocument(bytes.toString('utf8'), name);
    const folder = file === '-' ? '.' : dirname(resolve(file));
    const resolved = await resolveReferences(document.state, { ...terminal, folder });
    if (resolved.issues.length > 0) throw document.refusal(resolved.issues);
    await withVault(args, terminal, args['dry-run'] ? 'refuse' : 'create', (vault, settings) =>
      apply(
        { args, name, document, resolved: withKeyDir(resolved, args['key-dir']) },
        vault,
        settings,
        terminal,
      ),
    );
  },
});

type Order = {
  readonly args: Given;
  readonly name: string;
  readonly document: DesiredDocument;
  readonly resolved: Resolved;
};

async function apply(order: Order, vault: Vault, settings: Settings, terminal: Terminal): Promise<void> {
  const { args, name, document, resolved } = order;
  const { wanted, secretFiles } = resolved;
  if (!args['dry-run']) await recoverKeyFiles(vault, secretFiles, terminal);
  const planning: PlanOptions = {
    others: args.prune ? 'go' : 'stay',
    protectedCertificates: [settings, ...(await allSettingsInUse(vault, settings))].flatMap(({ tls }) =>
      tls?.kind === 'certificate' ? [tls.name] : [],
    ),
  };
  const state = await readVaultState(vault, vault.db.reader);
  const issues = stateIssues(state, wanted, planning, vault.world.now());
  if (issues.length > 0) throw document.refusal(issues);
  const changes = await planChanges(state, wanted, planning);
  const foundInKeys = keyIssues(changes, secretFiles);
  if (foundInKeys.length > 0) throw document.refusal(foundInKeys);
  const stop = stopSignal();
  const checked = await checkChanges(vault, wanted, changes, stop);
  if (args['dry-run'] || changes.length === 0 || !args.json) {
    terminal.stdout.write(shown(changes, args, terminal));
  }
  if (changes.length === 0) return;
  if (args['dry-run']) {
    if (!args['exit-code']) return;
    throw new OperatorError(`the vault differs from ${name}`, {
      hint: 'Run the command without --dry-run to apply the changes.',
    });
  }
  await confirm(changes, args, terminal, stop);
  await applyChanges(vault, localCli, wanted, checked, {
    signal: stop,
    beforeStep: (step) => draftKeyFiles(newSecrets(step, secretFiles)),
    beforeCommit: (step) => requireDrafts(newSecrets(step, secretFiles).keys()),
    afterStep: (step) => publishKeyFiles(vault, newSecrets(step, secretFiles).keys()),
  });
  if (args.json) terminal.stdout.write(changesJson(changes, 'applied'));
  for (const { section, action, name: key } of changes) {
    if (section === 'acme_clients' && action === 'create') {
      terminal.stderr.write(`Print the key of ACME client ${key}: vault acme-client rotate ${key}\n`);
    }
    if (section !== 'api_keys' || action !== 'create') continue;
    terminal.stderr.write(`Wrote the secret of API key ${key} to ${secretFiles.get(key)}.\n`);
  }
  terminal.stderr.write(`Applied ${name}.\n`);
}

function shown(changes: readonly Change[], { json }: Given, { stdout }: Terminal): string {
  if (json) return changesJson(changes, 'planned');
  return changes.length === 0 ? 'No changes.\n' : changesText(changes, stdout);
}

/** Asks for confirmation on a terminal. Without one, throws OperatorError if anything would be removed. */
async function confirm(
  changes: readonly Change[],
  { yes, json }: Given,
  terminal: Terminal,
  stop: AbortSignal,
): Promise<void> {
  if (yes) return;
  if (terminal.stdin.isTTY && terminal.stdout.isTTY) {
    // Standard output holds only JSON.
    if (json) terminal.stderr.write(changesText(changes, terminal.stderr));
    if (await askYes(terminal, 'Apply these changes?', stop)) return;
    throw new OperatorError('not confirmed; nothing was changed', { hint: 'Answer y to apply the changes.' });
  }
  if (changes.every(({ action }) => action !== 'remove')) return;
  throw new OperatorError('refusing to remove anything without confirmation', {
    hint: 'Add --yes to confirm. Nothing was changed.',
  });
}

/** Adds files in `--key-dir` for API keys without a secret_file. */
function withKeyDir(resolved: Resolved, folder: string | undefined): Resolved {
  if (folder === undefined) return resolved;
  const names = [...resolved.wanted.api_keys.keys()];
  // Encoded, so that any key name is a valid and unique file name.
  const usual = names.map((name) => [name, resolve(folder, `${encodeURIComponent(name)}.key`)] as const);
  return { ...resolved, secretFiles: new Map([...usual, ...resolved.secretFiles]) };
}

function keyIssues(changes: readonly Change[], secretFiles: ReadonlyMap<string, string>): StateIssue[] {
  const users = new Map<string, string>();
  return changes.flatMap(({ action, section, name }) => {
    if (section !== 'api_keys' || action !== 'create') return [];
    const file = secretFiles.get(name);
    const path = ['api_keys', name, 'secret_file'];
    if (file === undefined) {
      return [{ path, message: 'missing for a new API key; name a file for its secret, or use --key-dir' }];
    }
    const other = users.get(file);
    users.set(file, name);
    const message = other === undefined ? keyFileIssue(file) : `API key ${other} uses ${file} too`;
    return message === undefined ? [] : [{ path, message }];
  });
}

async function recoverKeyFiles(
  vault: DatabaseContext,
  secretFiles: ReadonlyMap<string, string>,
  { stderr }: Terminal,
): Promise<void> {
  for (const [name, path] of secretFiles) {
    if (!(await recoverKeyFile(vault, path))) continue;
    stderr.write(`Recovered the secret of API key ${name} from an interrupted run: ${path}\n`);
  }
}

/** The secrets of new API keys by the paths of their files. */
function newSecrets(
  prepared: readonly PreparedChange[],
  secretFiles: ReadonlyMap<string, string>,
): ReadonlyMap<string, Secret<string>> {
  return new Map(
    prepared.flatMap(({ name, token }) => {
      const path = secretFiles.get(name);
      return token === undefined || path === undefined ? [] : [[path, token.raw] as const];
    }),
  );
}
