/** `vault certificate import`: stores a certificate issued elsewhere, or a new version of it. */
import { printable } from '../../../base/printable-text.ts';
import type { Secret } from '../../../base/secret.ts';
import type { BundleSource } from '../../../crypto/bundles/certificate-bundle.ts';
import { looksLikePkcs12 } from '../../../crypto/bundles/pkcs12.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { importCertificate } from '../../../domain/certificates/certificate-import.ts';
import { certName } from '../../../domain/input-strings.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { askPassword } from '../../terminal/prompt.ts';
import { secretText } from '../../terminal/secret-text.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { labelOption, labelsToFind } from '../label-options.ts';
import { nameOption } from './certificate-options.ts';
import { importThere } from './certificates-there.ts';

export const importCommand = command({
  name: 'certificate import',
  description: 'Import a certificate, or a new version of it',
  examples: [
    {
      does: 'Import a certificate, or the next version of it',
      line: 'vault certificate import --name mail --fullchain fullchain.pem --private-key privkey.pem',
    },
    {
      does: 'Import from a PKCS#12 file',
      line: 'vault certificate import --name mail --pkcs12 mail.p12 --password-file password.txt',
    },
  ],
  options: {
    ...nameOption,
    fullchain: {
      type: 'string',
      valueHint: 'FILE',
      description: 'certificate and chain as PEM; - for standard input',
    },
    'private-key': {
      type: 'string',
      valueHint: 'FILE',
      description: 'the private key as PEM, unless the fullchain file holds it',
    },
    pkcs12: {
      type: 'string',
      valueHint: 'FILE',
      description: 'a .p12 or .pfx file with certificate, chain and key',
    },
    'password-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a file with the password of the PKCS#12 file (default: prompt for it)',
    },
    'allow-ca': {
      type: 'boolean',
      description: 'import a CA certificate, such as the self-signed ones of "openssl req -x509"',
    },
    ...labelOption,
    force: { type: 'boolean', description: 'add a version even if the files are those of the current one' },
    'allow-lost-domains': {
      type: 'boolean',
      description: 'add a version that lacks domains of the current one',
    },
  },
  run: async (args, terminal) => {
    const paths = sourcePaths(args);
    const name = parseInput(certName, args.name);
    const labels = labelsToFind(args.label);
    const sources: BundleSource[] = [];
    for (const path of paths) {
      const bytes = await readInput(path, terminal);
      sources.push({ name: path === '-' ? 'standard input' : path, bytes });
    }
    const needsPassword = sources.some(({ bytes }) => looksLikePkcs12(bytes));
    const password = needsPassword ? await passwordFor(args['password-file'], terminal) : undefined;
    const request = {
      ...{ name, labels, sources, password, force: args.force },
      ...{ allowCa: args['allow-ca'], allowLostDomains: args['allow-lost-domains'] },
    };
    const { version, changed, warnings } = await onVault(
      args,
      terminal,
      'create',
      (vault) => importCertificate(vault, localCli, request),
      (remote) => importThere(remote, request),
    );
    for (const warning of warnings) terminal.stderr.write(`Warning: ${printable(warning)}\n`);
    if (!changed) {
      terminal.stderr.write(
        `Version ${version} of ${name} already holds these files; nothing was changed. --force adds a version.\n`,
      );
    }
    terminal.stdout.write(`${name}: version ${version}\n`);
  },
});

function sourcePaths(args: {
  readonly fullchain: string | undefined;
  readonly 'private-key': string | undefined;
  readonly pkcs12: string | undefined;
  readonly 'password-file': string | undefined;
}): string[] {
  const files = [args.fullchain, args['private-key']].filter((path) => path !== undefined);
  if (args.pkcs12 !== undefined && files.length > 0) {
    throw new Misuse(
      '--pkcs12 cannot be combined with --fullchain or --private-key',
      'Use either --pkcs12, or --fullchain and --private-key.',
    );
  }
  if (args.pkcs12 === undefined && args.fullchain === undefined) {
    throw new Misuse('--fullchain is missing', 'Use --fullchain and --private-key, or --pkcs12.');
  }
  if ([...files, args.pkcs12, args['password-file']].filter((path) => path === '-').length > 1) {
    throw new Misuse(
      'only one option can read standard input',
      'Send certificate, chain and key together, or name files.',
    );
  }
  return args.pkcs12 === undefined ? files : [args.pkcs12];
}

async function passwordFor(
  file: string | undefined,
  terminal: Terminal,
): Promise<Secret<string> | undefined> {
  if (file !== undefined) {
    return secretText(await readInput(file, terminal));
  }
  return terminal.stdin.isTTY ? askPassword(terminal, 'Password of the PKCS#12 file: ') : undefined;
}
