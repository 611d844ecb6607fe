/** `vault systemd-unit`: the unit file that runs this very executable as a service. */
import { OperatorError } from '../../base/operator-error.ts';
import { readAsset } from '../runtime/assets.ts';
import { commandWithoutVault } from '../runtime/command.ts';

/** Below these the unit lets no service look; what lies in /tmp is gone after the next boot. */
const hidden = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];

export const systemdUnitCommand = commandWithoutVault({
  name: 'systemd-unit',
  description: 'print a unit file that runs this executable as a service of systemd',
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
      `vault: a service cannot see ${executable}\n` +
        '  Copy it to /usr/local/bin/vault, and run this command there.\n',
    );
  },
});

/** The unit with this path in it. Throws OperatorError for a path that systemd takes in no way of writing. */
function unitFor(executable: string): string {
  if (/["'\\]|\p{Cc}/u.test(executable)) {
    throw new OperatorError(
      'systemd runs no program whose path has quotes, backslashes or control characters',
      {
        hint: 'Copy it to /usr/local/bin/vault, and run this command there.',
      },
    );
  }
  // % begins a specifier; the quotes are for blanks.
  const word = `"${executable.replaceAll('%', '%%')}"`;
  const line = `ExecStart=${/^[\w./-]+$/.test(executable) ? executable : word}`;
  return readAsset('certificate-vault.service').replace('ExecStart={{executable}}', () => line);
}
