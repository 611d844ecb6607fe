/** `vault systemd-unit`: prints a unit file that runs this executable as a service. */
import { OperatorError } from '../../base/operator-error.ts';
import { readAsset } from '../runtime/assets.ts';
import { commandWithoutVault } from '../runtime/command.ts';
import { named } from '../runtime/program-name.ts';

/** Directories that the unit hides from the service; /tmp is also emptied at boot. */
const hidden = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];

export const systemdUnitCommand = commandWithoutVault({
  name: 'systemd-unit',
  description: 'Print a systemd unit file for this executable',
  examples: [
    {
      does: 'Install the service',
      line: 'vault systemd-unit > /etc/systemd/system/certificate-vault.service',
    },
  ],
  options: {},
  run: async (_, { executable, stdout, stderr }) => {
    stdout.write(unitFor(executable));
    if (!hidden.some((folder) => executable.startsWith(`${folder}/`))) return;
    stderr.write(
      `vault: the systemd unit cannot access ${executable}\n` +
        '  Copy the executable to /usr/local/bin/vault and run the command from there.\n',
    );
  },
});

/** The unit for this path. Throws OperatorError for a path that cannot be written in a unit file. */
function unitFor(executable: string): string {
  if (/["'\\]|\p{Cc}/u.test(executable)) {
    throw new OperatorError(
      'systemd cannot run an executable whose path has quotes, backslashes or control characters',
      {
        hint: 'Copy the executable to /usr/local/bin/vault and run the command from there.',
      },
    );
  }
  // In a unit file, % begins a specifier and spaces need quotes.
  const word = `"${executable.replaceAll('%', '%%')}"`;
  const line = `ExecStart=${/^[\w./-]+$/.test(executable) ? executable : word}`;
  return named(readAsset('certificate-vault.service')).replace('ExecStart={{executable}}', () => line);
}
