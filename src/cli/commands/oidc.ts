/** `vault oidc test`: shows what the vault would make of a sign-in at the OpenID Connect provider, without one. */
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { printable, shortened } from '../../base/printable-text.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { OidcProvider } from '../../domain/oidc/oidc-provider.ts';
import type { ProviderSettings } from '../../domain/oidc/provider-settings.ts';
import { OidcRefusal } from '../../domain/oidc/refusal.ts';
import { type BegunTest, beginTest, type TestResult, takeTestResult } from '../../domain/oidc/try-sign-in.ts';
import type { Vault } from '../../domain/vault.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { withVault } from '../runtime/with-vault.ts';
import { readProviderSettings } from '../settings/oidc-settings.ts';
import { jsonText } from '../terminal/output.ts';
import { jsonOption } from '../terminal/table.ts';

const pollInterval = second / 2;

/** At most this many characters of a claim are printed, except as JSON. */
const maxShown = 300;

type Authenticated = Extract<TestResult, { kind: 'authenticated' }>;

const test = command({
  name: 'oidc test',
  description: 'Show the claims of a sign-in by OpenID Connect, and the role that they would give',
  examples: [
    { does: 'Test the provider of the settings file, with a running server', line: 'vault oidc test' },
  ],
  options: jsonOption,
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault, settings) => {
      if (settings.oidc === undefined) {
        throw new OperatorError('no OpenID Connect provider is set', {
          hint: 'Set oidc_issuer in vault.yaml. Settings that "vault serve" gets as options are not known here.',
        });
      }
      const provider = readProviderSettings(settings.oidc);
      const begun = await begin(vault, provider);
      terminal.stderr.write(
        `Open this URL in a browser, and sign in at the provider. No one is signed in to the vault by it.\n\n${printable(begun.url)}\n\nWaiting until ${formatTimestamp(begun.expiresAt)}.\n`,
      );
      const result = await waitFor(vault, begun);
      if (result.kind === 'refused') {
        const facts = Object.entries(result.facts).map(([name, value]) => ` (${name}: ${printable(value)})`);
        throw new OperatorError(`the sign-in failed: ${printable(result.reason)}${facts.join('')}`);
      }
      const { claims, role, reach, profiles, name, account } = result;
      if (args.json) terminal.stdout.write(jsonText({ claims, role, reach, profiles, name, account }));
      else terminal.stdout.write(described(result, provider));
      refuseAsServer(result, provider);
    }),
});

export const oidcCommands = commandGroup('oidc', 'Test the sign-in by OpenID Connect', { test });

/** Begins at the provider. Throws OperatorError if it cannot be used. */
async function begin(vault: Vault, settings: ProviderSettings): Promise<BegunTest> {
  try {
    return await beginTest(vault, new OidcProvider(vault, settings));
  } catch (error) {
    if (!(error instanceof OidcRefusal)) throw error;
    throw new OperatorError(`${settings.issuer}: ${printable(error.summary)}`, {
      hint: 'Check oidc_issuer, and oidc_ca_file if the certificate is from a private CA.',
      cause: error,
    });
  }
}

/** The result, as soon as the server has it. Throws OperatorError if it does not come. */
async function waitFor(vault: Vault, begun: BegunTest): Promise<TestResult> {
  const stop = stopSignal();
  for (;;) {
    const result = await takeTestResult(vault, begun);
    if (result !== undefined) return result;
    if (stop.aborted) throw new OperatorError('interrupted');
    if (vault.world.now() >= begun.expiresAt) {
      throw new OperatorError('the provider sent no one back to the vault in time', {
        hint: 'Check that the server runs with these settings, and that its public URL leads to it.',
      });
    }
    await vault.world.sleep(pollInterval, stop);
  }
}

function described(
  { claims, values, role, reach, profiles, name, account }: Authenticated,
  provider: ProviderSettings,
): string {
  const { claim } = provider.roles;
  const width = Math.max(...Object.keys(claims).map((key) => printable(key).length));
  const shown = (value: unknown) =>
    shortened(typeof value === 'string' ? value : JSON.stringify(value), maxShown);
  const why = values.length === 0 ? `no ${claim} in the claims` : `${claim}: ${shown(values)}`;
  return [
    'claims',
    ...Object.entries(claims).map(([key, value]) => `  ${printable(key).padEnd(width)}  ${shown(value)}`),
    `role     ${role ?? 'none'} (${why})`,
    ...confinementLine('reach    ', reach),
    ...confinementLine('profiles ', profiles),
    `account  ${name === null ? account : `${name} (${account})`}`,
    '',
  ].join('\n');
}

/** A line, unless nothing confines the person. */
function confinementLine(title: string, confined: readonly string[] | null): string[] {
  if (confined !== null && confined.length === 0) return [];
  return [title + (confined?.join(', ') ?? 'none')];
}

/** Throws OperatorError with what to change, if the person could not sign in. */
function refuseAsServer(
  { role, reach, profiles, account }: Authenticated,
  { roles: { claim } }: ProviderSettings,
): void {
  if (role === null) {
    throw new OperatorError('this person would be refused: no role', {
      hint: `List one of the values of ${claim} in oidc_admins, oidc_operators or oidc_viewers, or set oidc_role_claim or oidc_default_role.`,
    });
  }
  if (reach === null) {
    throw new OperatorError('this person would be refused: no reach', {
      hint: `List one of the values of ${claim} in oidc_reach, with a label or * for everything.`,
    });
  }
  if (profiles === null) {
    throw new OperatorError('this person would be refused: no profiles', {
      hint: `List one of the values of ${claim} in oidc_profiles, with a profile or * for any.`,
    });
  }
  if (account === 'name taken') {
    throw new OperatorError('this person would be refused: another administrator has the name', {
      hint: 'Delete the other administrator if it is the same person.',
    });
  }
  if (account === 'no valid name') {
    throw new OperatorError('this person would be refused: no claim is valid as a name', {
      hint: 'Let the provider send preferred_username or a verified email address.',
    });
  }
}
