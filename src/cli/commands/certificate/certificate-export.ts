/**
 * `vault certificate export`: writes the artifacts of a certificate to files of this machine, recorded like downloads.
 */
import { join } from 'node:path';
import { localCli } from '../../../domain/audit/audit.ts';
import type { CertificateView } from '../../../domain/certificates/certificate-views.ts';
import type { Vault } from '../../../domain/vault.ts';
import { listedArtifacts } from '../../../domain/versions/artifacts.ts';
import { certificateSummary, requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { Downloads } from '../../../domain/versions/downloads.ts';
import { FormatDownloads } from '../../../domain/versions/format-downloads.ts';
import {
  type FileName,
  type FormatName,
  fileNames,
  formatNames,
  formats,
  type Keystore,
} from '../../../domain/versions/formats.ts';
import { holdsKey } from '../../../domain/versions/versions.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import {
  type PrivateFile,
  refuseOtherThanDirectory,
  writePrivateFiles,
} from '../../terminal/private-output.ts';
import { nameOption } from './certificate-options.ts';
import { certificatePath, downloadThere, suggestingThere } from './certificates-there.ts';
import { keystoreFor, keystoreOptions } from './keystore-options.ts';

export const exportCommand = command({
  name: 'certificate export',
  description: 'Write the files of a certificate to a directory',
  examples: [
    {
      does: 'Write certificate, chain and private key, readable by you alone',
      line: 'vault certificate export --name web --out web-files',
    },
    {
      does: 'Print the certificate and its chain',
      line: 'vault certificate export --name web --out - --file fullchain.crt',
    },
    {
      does: 'Write a keystore for Java or Windows',
      line: 'vault certificate export --name web --out web-files --file keystore.p12 --keystore-password-file password.txt',
    },
  ],
  options: {
    ...nameOption,
    out: {
      type: 'string',
      valueHint: 'DIR',
      required: true,
      description: 'the directory to write to; - with one --file for standard output',
    },
    file: {
      type: 'string',
      valueHint: 'FILE',
      multiple: true,
      values: fileNames,
      description: `a file to write: ${fileNames.join(', ')} (default: ${listedArtifacts.join(', ')})`,
    },
    ...keystoreOptions,
    force: { type: 'boolean', description: 'replace files with other content' },
  },
  run: async ({ out, ...args }, terminal) => {
    const chosen = args.file.length === 0 ? listedArtifacts : new Set(args.file.map(fileName));
    const names: readonly FileName[] = [...chosen];
    if (out === '-' && args.file.length !== 1) {
      throw new Misuse('--out - needs one --file', 'Name the file to print: --out - --file fullchain.crt');
    }
    const uses = names.map((name) => (isFormat(name) ? formats[name].keystore : 'none'));
    const keystore = await keystoreFor(args, uses, terminal);
    const isChosen = args.file.length > 0;
    const write = async (found: readonly Exported[]) => {
      if (out !== '-') refuseOtherThanDirectory(out);
      const files: PrivateFile[] = [];
      for (const artifact of found) {
        const content = await artifact.handOut();
        if (out === '-') terminal.stdout.write(content);
        else files.push({ name: artifact.file, path: join(out, artifact.file), content });
      }
      if (out === '-') return;
      const written = writePrivateFiles(terminal.world, out, files, args.force ? 'replace' : 'refuse');
      const done = written.length === 0 ? `${out} is up to date` : `wrote ${written.join(', ')} to ${out}`;
      terminal.stdout.write(`${args.name}: version ${found[0]?.version}, ${done}\n`);
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await requireCertificate(vault.db.reader, args.name, { suggest: true });
        await write(await sameVersion(vault, args.name, names, keystore, isChosen));
      },
      async (remote) => write(await sameVersionThere(remote, args.name, names, keystore, isChosen)),
    );
  },
});

function fileName(name: string): FileName {
  const known = fileNames.find((file) => file === name);
  if (known !== undefined) return known;
  throw new Misuse(`--file: unknown file ${JSON.stringify(name)}`, `Use one of ${fileNames.join(', ')}.`);
}

function isFormat(name: FileName): name is FormatName {
  return (formatNames as readonly FileName[]).includes(name);
}

/** A file of a version; `handOut` records it, and then returns the content. */
type Exported = {
  readonly file: FileName;
  readonly version: number;
  readonly handOut: () => Promise<string | Buffer>;
};

/**
 * The files of one version, so that key and certificate match even if a renewal finishes in between. A private key that
 * the client holds is left out unless the files were `isChosen`.
 */
async function sameVersion(
  vault: Vault,
  name: string,
  files: readonly FileName[],
  keystore: Keystore | undefined,
  isChosen: boolean,
): Promise<Exported[]> {
  const downloads = new Downloads(vault);
  const formatDownloads = new FormatDownloads(vault, downloads);
  const found: Exported[] = [];
  for (const file of files) {
    if (file === 'private.key' && !isChosen && !(await isKeyHeld(vault, name))) continue;
    const version = found[0]?.version;
    if (isFormat(file)) {
      const formatted = await formatDownloads.find(name, file, version, keystore);
      found.push({ ...formatted, handOut: () => formatDownloads.handOut(formatted, localCli) });
    } else {
      const artifact = await downloads.find(name, file, version);
      found.push({ ...artifact, handOut: () => downloads.handOut(artifact, localCli) });
    }
  }
  return found;
}

/** Like `sameVersion`, at a server; reading the certificate there names the version that all files are of. */
async function sameVersionThere(
  remote: RemoteVault,
  name: string,
  files: readonly FileName[],
  keystore: Keystore | undefined,
  isChosen: boolean,
): Promise<Exported[]> {
  const { current_version: current, artifacts } = await suggestingThere(
    remote,
    name,
    remote.get<CertificateView>(certificatePath(name)),
  );
  const isListed = (file: FileName) => artifacts.some((artifact) => artifact.file === file);
  const wanted = files.filter((file) => isChosen || file !== 'private.key' || isListed(file));
  const version = current?.version ?? 1;
  return wanted.map((file) => {
    const password = isFormat(file) && formats[file].keystore !== 'none' ? keystore : undefined;
    return {
      file,
      version,
      handOut: async () => (await downloadThere(remote, name, file, current?.version, password)).content,
    };
  });
}

async function isKeyHeld(vault: Vault, name: string): Promise<boolean> {
  const current = (await certificateSummary(vault, name))?.current;
  return current == null || holdsKey(current);
}
