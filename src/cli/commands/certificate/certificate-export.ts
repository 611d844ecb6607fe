/** `vault certificate export`: writes the artifacts of a certificate to files of this machine, recorded like downloads. */
import { join } from 'node:path';
import { localCli } from '../../../domain/audit/audit.ts';
import { type ArtifactName, artifactNames, listedArtifacts } from '../../../domain/versions/artifacts.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { type Artifact, Downloads } from '../../../domain/versions/downloads.ts';
import { command } from '../../runtime/command.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import {
  type PrivateFile,
  refuseOtherThanDirectory,
  writePrivateFiles,
} from '../../terminal/private-output.ts';
import { nameOption } from './certificate-options.ts';

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
      values: artifactNames,
      description: `a file to write: ${artifactNames.join(', ')} (default: ${listedArtifacts.join(', ')})`,
    },
    force: { type: 'boolean', description: 'replace files with other content' },
  },
  run: async ({ out, ...args }, terminal) => {
    const chosen = args.file.length === 0 ? listedArtifacts : new Set(args.file.map(artifactName));
    const names: readonly ArtifactName[] = [...chosen];
    if (out === '-' && args.file.length !== 1) {
      throw new Misuse('--out - needs one --file', 'Name the file to print: --out - --file fullchain.crt');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      await requireCertificate(vault.db.reader, args.name, { suggest: true });
      const downloads = new Downloads(vault);
      const found = await sameVersion(downloads, args.name, names);
      if (out !== '-') refuseOtherThanDirectory(out);
      const files: PrivateFile[] = [];
      for (const artifact of found) {
        const content = await downloads.handOut(artifact, localCli);
        if (out === '-') terminal.stdout.write(content);
        else files.push({ name: artifact.file, path: join(out, artifact.file), content });
      }
      if (out === '-') return;
      const written = writePrivateFiles(terminal.world, out, files, args.force ? 'replace' : 'refuse');
      const done = written.length === 0 ? `${out} is up to date` : `wrote ${written.join(', ')} to ${out}`;
      terminal.stdout.write(`${args.name}: version ${found[0]?.version}, ${done}\n`);
    });
  },
});

function artifactName(name: string): ArtifactName {
  const known = artifactNames.find((artifact) => artifact === name);
  if (known !== undefined) return known;
  throw new Misuse(`--file: unknown file ${JSON.stringify(name)}`, `Use one of ${artifactNames.join(', ')}.`);
}

/** The artifacts of one version, so that key and certificate match even if a renewal finishes in between. */
async function sameVersion(
  downloads: Downloads,
  name: string,
  files: readonly ArtifactName[],
): Promise<Artifact[]> {
  const found: Artifact[] = [];
  for (const file of files) found.push(await downloads.find(name, file, found[0]?.version));
  return found;
}
