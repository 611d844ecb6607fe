/** `vault certificate create`: the private CA issues at once, an ACME CA through a renewal that is queued. */
import { formatTimestamp } from '../../../base/timestamp.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { createCertificate } from '../../../domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../domain/inputs.ts';
import { certificateSummary } from '../../../domain/versions/certificate-lookup.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { nameOption, waitOptions, wishOptions } from './certificate-options.ts';
import { watchRenewal } from './watch-renewal.ts';

export const createCommand = command({
  name: 'certificate create',
  description:
    'make a certificate: with the private CA version 1 is there at once, an ACME CA is asked for it',
  examples: [
    {
      does: 'Have the private CA make one, which is there at once',
      line: 'vault certificate create --name web --domain www.example.test',
    },
    {
      does: "Order one from Let's Encrypt, and watch",
      line: 'vault certificate create --name shop --domain shop.example.com --domain example.com --issuer letsencrypt --wait',
    },
  ],
  options: {
    ...nameOption,
    domain: {
      type: 'string',
      valueHint: 'DOMAIN',
      required: true,
      multiple: true,
      description: 'a DNS name, a wildcard or an IP address',
    },
    ...wishOptions,
    lifetime: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long each version of the private CA is valid (default: 90d)',
    },
    'reuse-key': { type: 'boolean', description: 'keep the private key at renewals' },
    ...waitOptions,
  },
  run: async (args, terminal) => {
    const input = parseInput(createCertificateInput, {
      name: args.name,
      domains: args.domain,
      reuse_key: args['reuse-key'],
      ...(args.issuer !== undefined && { issuer: args.issuer }),
      ...(args['fallback-issuer'] !== undefined && { fallback_issuer: args['fallback-issuer'] }),
      ...(args['key-type'] !== undefined && { key_type: args['key-type'] }),
      ...(args.lifetime !== undefined && { lifetime: args.lifetime }),
      ...(args.profile !== undefined && { profile: args.profile }),
      ...(args.challenge !== undefined && { challenge: args.challenge }),
    });
    const { name } = input;
    await withVault(args, terminal, 'create', async (vault) => {
      const renewal = await createCertificate(vault, localCli, input);
      if (renewal !== undefined && args.wait) {
        await watchRenewal(vault, terminal, { id: renewal, name });
        return;
      }
      if (renewal !== undefined) {
        terminal.stderr.write(
          `${name} is ordered from ${input.issuer} as soon as "vault serve" runs.\n` +
            `  See how it goes with "vault certificate renew --name ${name} --wait".\n`,
        );
        return;
      }
      const current = (await certificateSummary(vault, name))?.current;
      if (current == null) return;
      const until = formatTimestamp(current.not_after);
      terminal.stdout.write(`${name}: version ${current.version}, valid until ${until}\n`);
    });
  },
});
