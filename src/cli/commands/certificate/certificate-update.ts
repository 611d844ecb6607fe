/** `vault certificate update`: other names, another key, another issuer; what is not named stays. */
import { localCli } from '../../../domain/audit/audit.ts';
import { changeCertificate } from '../../../domain/certificates/certificate-update.ts';
import { parseInput, updateCertificateInput } from '../../../domain/inputs.ts';
import { requestRenewal } from '../../../domain/renewals/renewals.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { nameOption, waitOptions, wishOptions } from './certificate-options.ts';
import { watchRenewal } from './watch-renewal.ts';

/** Two switches for one thing that is either on or off; undefined where neither is given. */
function either(on: boolean, off: boolean, names: readonly [string, string]): boolean | undefined {
  if (on && off) throw new Misuse(`${names[0]} and ${names[1]} exclude each other`, 'Give one of them.');
  return on || off ? on : undefined;
}

/** A wish, its withdrawal by the word `none`, or undefined where it is not named. */
function wish(text: string | undefined): string | null | undefined {
  return text === 'none' ? null : text;
}

export const updateCommand = command({
  name: 'certificate update',
  description: 'change a certificate; other domains or another key type renew it at once',
  examples: [
    {
      does: 'Give it another domain, which renews it at once',
      line: 'vault certificate update --name web --domain www.example.test --domain example.test',
    },
    { does: 'Renew it only when somebody asks', line: 'vault certificate update --name web --no-auto-renew' },
    {
      does: 'Move it to another CA, and have that one issue now',
      line: 'vault certificate update --name web --issuer letsencrypt --wait',
    },
  ],
  options: {
    ...nameOption,
    domain: {
      type: 'string',
      valueHint: 'DOMAIN',
      multiple: true,
      description: 'all domains it shall have from now on',
    },
    ...wishOptions,
    issuer: { ...wishOptions.issuer, description: 'who issues it from now on, and with --wait at once' },
    'key-type': { ...wishOptions['key-type'], description: 'the type of its next key' },
    lifetime: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long its next versions are valid, or none for 90 days (private CA)',
    },
    profile: { ...wishOptions.profile, description: `${wishOptions.profile.description}, or none` },
    challenge: {
      ...wishOptions.challenge,
      description: 'how control of its names is proved, or none to choose',
    },
    'fallback-issuer': {
      ...wishOptions['fallback-issuer'],
      description: `${wishOptions['fallback-issuer'].description}, or none`,
    },
    'reuse-key': { type: 'boolean', description: 'keep the private key at renewals' },
    'rotate-key': { type: 'boolean', description: 'make a new private key at each renewal' },
    'auto-renew': { type: 'boolean', description: 'renew it when it is due' },
    'no-auto-renew': { type: 'boolean', description: 'renew it on request only' },
    disable: { type: 'boolean', description: 'renew it no more, not even on request' },
    enable: { type: 'boolean', description: 'renew it again' },
    ...waitOptions,
  },
  run: async (args, terminal) => {
    const changes = {
      domains: args.domain.length > 0 ? args.domain : undefined,
      issuer: args.issuer,
      fallback_issuer: wish(args['fallback-issuer']),
      key_type: args['key-type'],
      lifetime: wish(args.lifetime),
      profile: wish(args.profile),
      challenge: wish(args.challenge),
      reuse_key: either(args['reuse-key'], args['rotate-key'], ['--reuse-key', '--rotate-key']),
      auto_renew: either(args['auto-renew'], args['no-auto-renew'], ['--auto-renew', '--no-auto-renew']),
      disabled: either(args.disable, args.enable, ['--disable', '--enable']),
    };
    const named = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (named.length === 0) {
      throw new Misuse('there is nothing to change', 'See "vault certificate update --help".');
    }
    const input = parseInput(updateCertificateInput, Object.fromEntries(named));
    await withVault(args, terminal, 'refuse', async (vault) => {
      const renewal = await changeCertificate(vault, localCli, args.name, input);
      if (args.wait && (renewal !== undefined || input.issuer !== undefined)) {
        // Whoever waits for another issuer wants its certificate now.
        const id = renewal ?? (await requestRenewal(vault, localCli, args.name)).id;
        await watchRenewal(vault, terminal, { id, name: args.name });
        return;
      }
      const next = renewal === undefined ? '' : ' It is renewed now, as soon as "vault serve" runs.';
      terminal.stderr.write(`Certificate ${args.name} is changed.${next}\n`);
      if (renewal === undefined && input.issuer !== undefined) {
        terminal.stderr.write(
          `  Its next version comes from ${input.issuer}. Have it now with "vault certificate renew --name ${args.name}".\n`,
        );
      }
    });
  },
});
