/** `vault version`: which vault this is, and what it is made of, as whoever reports a fault is asked. */
import { storageVersion } from '../../domain/upgrade/storage-version.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { facts, jsonText } from '../terminal/output.ts';

export const versionCommand = commandWithoutVault({
  name: 'version',
  description: 'print the version, and what is in this executable',
  examples: [
    { does: 'See the version of the vault and of what it runs on', line: 'vault version' },
    { does: 'The same for a program', line: 'vault version --json' },
  ],
  options: { json: { type: 'boolean', description: 'print JSON, for programs' } },
  run: async (args, { version, stdout }) => {
    const about = {
      version,
      node: process.versions.node,
      openssl: process.versions.openssl ?? '',
      ...storageVersion(),
      platform: `${process.platform}-${process.arch}`,
    };
    if (args.json) {
      stdout.write(jsonText(about));
      return;
    }
    stdout.write(
      facts([
        ['vault', about.version],
        ['Node', about.node],
        ['OpenSSL', about.openssl],
        ['SQLite', about.sqlite],
        ['Schema', about.schema],
        ['Platform', about.platform],
      ]),
    );
  },
});
