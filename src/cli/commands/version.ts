/** `vault version`: the versions of the vault and of its components, for bug reports. */
import { storageVersion } from '../../domain/instance/vault-database.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { facts, jsonText } from '../terminal/output.ts';

export const versionCommand = commandWithoutVault({
  name: 'version',
  description: 'Print the version of the vault and of its components',
  examples: [
    { does: 'Print the version of the vault and of its components', line: 'vault version' },
    { does: 'Print the same as JSON', line: 'vault version --json' },
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
