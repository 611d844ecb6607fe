/** `vault certificate update`: changes the domains, key, issuer or renewal of a certificate. */
import { localCli } from '../../../domain/audit/audit.ts';
import { changeCertificate } from '../../../domain/certificates/certificate-update.ts';
import { parseInput, updateCertificateInput } from '../../../domain/inputs.ts';
import { requestRenewal } from '../../../domain/renewals/renewals.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { labelsFrom, newLabelsOption } from '../label-options.ts';
import { issuanceOptions, leafOptions, nameOption, waitOptions } from './certificate-options.ts';
import { type ChangedCertificate, certificatePath, renewThere } from './certificates-there.ts';
import { keyFacts, keyFactsThere, keyNotice } from './key-notices.ts';
import { csrOption, readRequestFile } from './request-file.ts';
import { watchRenewal } from './watch-renewal.ts';
import { watchThere } from './watch-there.ts';

/** The value of a pair of opposite flags; undefined if neither is given. */
function onOff(on: boolean, off: boolean, names: readonly [string, string]): boolean | undefined {
  if (on && off) throw new Misuse(`${names[0]} and ${names[1]} exclude each other`, 'Use one of them.');
  return on || off ? on : undefined;
}

/** The value of an option that `none` clears. */
function clearable(text: string | undefined): string | null | undefined {
  return text === 'none' ? null : text;
}

/** The values of a repeatable option that `none` clears. */
function clearableList(values: readonly string[]): readonly string[] | null | undefined {
  if (values.length === 0) return undefined;
  return values.length === 1 && values[0] === 'none' ? null : values;
}

export const updateCommand = command({
  name: 'certificate update',
  description: 'Change a certificate; options not given stay the same',
  examples: [
    {
      does: 'Add a domain, which renews the certificate immediately',
      line: 'vault certificate update --name web --domain www.example.test --domain example.test',
    },
    {
      does: 'Issue for a new key that the client keeps',
      line: 'vault certificate update --name db --csr db.csr --wait',
    },
    {
      does: 'Replace the labels; API keys for them may access the certificate immediately',
      line: 'vault certificate update --name web --label team=web',
    },
    { does: 'Turn off automatic renewal', line: 'vault certificate update --name web --no-auto-renew' },
    {
      does: 'Rotate the key once: prints the pins of the current and the next key',
      line: 'vault certificate update --name web --rotate-key',
    },
    {
      does: 'Change the issuer and issue a version from it now',
      line: 'vault certificate update --name web --issuer letsencrypt --wait',
    },
  ],
  options: {
    ...nameOption,
    domain: {
      type: 'string',
      valueHint: 'DOMAIN',
      multiple: true,
      description: 'a domain; the given domains replace all current ones',
    },
    ...issuanceOptions,
    issuer: { ...issuanceOptions.issuer, description: 'the new issuer; with --wait, issue from it now' },
    'key-type': { ...issuanceOptions['key-type'], description: 'the type of the next private key' },
    lifetime: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long versions issued by the private CA are valid, or none for 90 days',
    },
    profile: { ...issuanceOptions.profile, description: `${issuanceOptions.profile.description}, or none` },
    challenge: {
      ...issuanceOptions.challenge,
      description: 'the challenge type, or none to choose it automatically',
    },
    'fallback-issuer': {
      ...issuanceOptions['fallback-issuer'],
      description: `${issuanceOptions['fallback-issuer'].description}, or none`,
    },
    ...leafOptions,
    csr: {
      ...csrOption,
      description: `${csrOption.description}; none for keys that the vault generates`,
    },
    ...newLabelsOption,
    'reuse-key': { type: 'boolean', description: 'keep the same private key at each renewal' },
    'no-reuse-key': { type: 'boolean', description: 'generate a new private key at each renewal' },
    'rotate-key': {
      type: 'boolean',
      description: 'generate one new key now, and use it from the next renewal on',
    },
    'no-rotate-key': { type: 'boolean', description: 'cancel a scheduled key rotation' },
    'auto-renew': { type: 'boolean', description: 'renew automatically' },
    'no-auto-renew': { type: 'boolean', description: 'renew only on request' },
    disable: { type: 'boolean', description: 'disable all renewals, including manual ones' },
    enable: { type: 'boolean', description: 'enable renewals again' },
    ...waitOptions,
  },
  run: async (args, terminal) => {
    const changes = {
      domains: args.domain.length > 0 ? args.domain : undefined,
      issuer: args.issuer,
      fallback_issuer: clearable(args['fallback-issuer']),
      key_type: args['key-type'],
      lifetime: clearable(args.lifetime),
      profile: clearable(args.profile),
      challenge: clearable(args.challenge),
      reuse_key: onOff(args['reuse-key'], args['no-reuse-key'], ['--reuse-key', '--no-reuse-key']),
      usage: clearable(args.usage),
      uris: clearableList(args.uri),
      emails: clearableList(args.email),
      subject: clearableList(args.subject),
      csr:
        args.csr === undefined || args.csr === 'none'
          ? clearable(args.csr)
          : await readRequestFile(args.csr, terminal),
      labels: labelsFrom(args.label),
      rotate_key: onOff(args['rotate-key'], args['no-rotate-key'], ['--rotate-key', '--no-rotate-key']),
      auto_renew: onOff(args['auto-renew'], args['no-auto-renew'], ['--auto-renew', '--no-auto-renew']),
      disabled: onOff(args.disable, args.enable, ['--disable', '--enable']),
    };
    const named = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (named.length === 0) {
      throw new Misuse('nothing to change', 'Try: vault certificate update --help');
    }
    const input = parseInput(updateCertificateInput, Object.fromEntries(named));
    // --wait with a new issuer or key means: issue with it now.
    const isWanted = input.issuer !== undefined || input.rotate_key === true;
    const say = (isQueued: boolean, notice: string) => {
      const next = isQueued ? ' Queued a renewal; "vault serve" runs it.' : '';
      terminal.stderr.write(`Updated certificate ${args.name}.${next}\n`);
      terminal.stderr.write(notice);
      if (!isQueued && input.issuer !== undefined) {
        terminal.stderr.write(
          `  The next renewal uses ${input.issuer}. To renew now: vault certificate renew --name ${args.name}\n`,
        );
      }
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const renewal = await changeCertificate(vault, localCli, args.name, input);
        if (args.wait && (renewal !== undefined || isWanted)) {
          const id = renewal ?? (await requestRenewal(vault, localCli, args.name)).id;
          await watchRenewal(vault, terminal, { id, name: args.name });
          return;
        }
        const isQueued = renewal !== undefined;
        say(isQueued, keyNotice(await keyFacts(vault, args.name), input, isQueued));
      },
      async (remote) => {
        const path = certificatePath(args.name);
        const changes = Object.fromEntries(named);
        const { renewal } = await remote.send<ChangedCertificate>('PATCH', path, changes);
        if (args.wait && (renewal !== null || isWanted)) {
          const id = renewal ?? (await renewThere(remote, args.name)).id;
          await watchThere(remote, terminal, { id, name: args.name });
          return;
        }
        const isQueued = renewal !== null;
        say(isQueued, keyNotice(await keyFactsThere(remote, args.name), input, isQueued));
      },
    );
  },
});
