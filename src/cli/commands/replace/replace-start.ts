/** `vault replace start`: shows what a replacement would do, and starts it. */
import { OperatorError } from '../../../base/operator-error.ts';
import { replacementReasons } from '../../../domain/replacements/replacement-inputs.ts';
import type { PreviewView } from '../../../domain/replacements/replacement-preview.ts';
import { command } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonText } from '../../terminal/output.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { type ReplacementBody, replacementsHere, replacementsThere } from './replacement-places.ts';
import { followReplacement, printReplacement, requireAllRevoked } from './replacement-progress.ts';

export const start = command({
  name: 'replace start',
  description: 'Reissue certificates, then revoke their old versions',
  examples: [
    {
      does: 'Show which certificates, hosts and API keys a replacement affects; change nothing',
      line: 'vault replace start --all-of-issuer local-ca --dry-run',
    },
    {
      does: 'Replace a certificate whose private key has leaked, within an hour',
      line: 'vault replace start --key-compromised shop --yes',
    },
    {
      does: 'Replace the certificates of a team within 8 hours, and wait for the end',
      line: 'vault replace start --label team=shop --deadline 8h --wait',
    },
  ],
  options: {
    'all-of-issuer': {
      type: 'string',
      valueHint: 'ISSUER',
      names: 'issuers',
      description: 'all certificates whose current version this issuer issued',
    },
    label: {
      type: 'string',
      valueHint: 'KEY=VALUE',
      multiple: true,
      description: 'all certificates with this label, such as team=web; repeat it for several',
    },
    'key-compromised': {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'one certificate, with a new private key',
    },
    reason: {
      type: 'string',
      valueHint: 'REASON',
      values: replacementReasons,
      description: `${replacementReasons.join(', ')} (default: superseded)`,
    },
    deadline: {
      type: 'string',
      valueHint: 'DURATION',
      description:
        'revoke old versions after this time even if new ones are not live everywhere; 0 as soon as they are issued (default: 1h for a compromised key, otherwise 24h)',
    },
    'dry-run': { type: 'boolean', description: 'show who is affected, and change nothing' },
    wait: { type: 'boolean', description: 'show progress and wait until the replacement ends' },
    ...yesOption,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const body = bodyFrom(args);
    const work = async (place: ReturnType<typeof replacementsHere>) => {
      const preview = await place.preview(body);
      if (args['dry-run']) return printPreview(terminal, args, preview);
      reportObstacles(terminal, preview);
      if (preview.replaced > 0) {
        const question = `Replace ${count(preview.replaced)}, and revoke the current ${preview.replaced === 1 ? 'version' : 'versions'} afterwards?`;
        await confirmLoss(terminal, args, { question, isPermanent: true });
      }
      const { id, deadline_at } = await place.create(body);
      terminal.stderr.write(
        `Replacement ${id} of ${count(preview.replaced)} started; "vault serve" carries it out, deadline ${deadline_at}.\n`,
      );
      if (args.wait) await followReplacement(place, terminal, id);
      const view = await place.view(id);
      if (args.json) terminal.stdout.write(jsonText(view));
      else if (!args.wait) terminal.stdout.write(`${id}\n`);
      else printReplacement(terminal, args, view, await place.certificates(id));
      if (args.wait) requireAllRevoked(view);
    };
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => work(replacementsHere(vault)),
      (remote) => work(replacementsThere(remote)),
    );
  },
});

/** Throws Misuse unless the options select certificates in one way. */
function bodyFrom(args: {
  readonly 'all-of-issuer': string | undefined;
  readonly label: readonly string[];
  readonly 'key-compromised': string | undefined;
  readonly reason: string | undefined;
  readonly deadline: string | undefined;
}): ReplacementBody {
  const { 'all-of-issuer': issuer, 'key-compromised': certificate, reason, deadline } = args;
  const labels = args.label.length === 0 ? undefined : args.label;
  const given = [
    ...(issuer === undefined ? [] : ['--all-of-issuer']),
    ...(labels === undefined ? [] : ['--label']),
    ...(certificate === undefined ? [] : ['--key-compromised']),
  ];
  if (given.length === 0) {
    throw new Misuse('no certificates selected', 'Use --all-of-issuer, --label or --key-compromised.');
  }
  if (given.length > 1) throw new Misuse(`${given.join(' and ')} exclude each other`, 'Use one of them.');
  if (certificate !== undefined && reason !== undefined) {
    throw new Misuse('--key-compromised and --reason exclude each other', 'Use one of them.');
  }
  if (reason !== undefined && !replacementReasons.some((known) => known === reason)) {
    throw new Misuse(`--reason: unknown reason "${reason}"`, `Use one of ${replacementReasons.join(', ')}.`);
  }
  return { issuer, labels, certificate, reason, deadline };
}

/** Throws OperatorError, which gives scripts the exit code 1, if certificates require action. */
function printPreview(terminal: Terminal, args: { readonly json: boolean }, preview: PreviewView): void {
  const { certificates, replaced, obstructed } = preview;
  printList(terminal, args, certificates, {
    none: 'No matching certificates.',
    columns: [
      { title: 'CERTIFICATE', holds: 'name' },
      'VERSION',
      { title: 'EXPIRES', holds: 'time' },
      { title: 'HOSTS', holds: 'list' },
      { title: 'ENDPOINTS', holds: 'list' },
      { title: 'API KEYS', holds: 'list' },
      { title: 'ACTION REQUIRED', holds: 'text' },
    ],
    row: (one) => [
      ...[one.certificate, String(one.version), one.not_after],
      ...[one.hosts, one.endpoints, one.api_keys].map((names) => (names.length === 0 ? '-' : names)),
      one.obstacle ?? '-',
    ],
  });
  const hidden = replaced + obstructed - certificates.length;
  if (hidden > 0) terminal.stderr.write(`${count(hidden)} more are not shown.\n`);
  if (obstructed > 0) {
    throw new OperatorError(`action required for ${obstructed} of ${replaced + obstructed} certificates`);
  }
}

function reportObstacles(terminal: Terminal, { certificates }: PreviewView): void {
  for (const { certificate, obstacle } of certificates) {
    if (obstacle !== null) terminal.stderr.write(`cannot replace ${certificate}: ${obstacle}\n`);
  }
}

function count(certificates: number): string {
  return `${certificates} certificate${certificates === 1 ? '' : 's'}`;
}
