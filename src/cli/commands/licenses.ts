/** `vault licenses`: the licenses of the vault and of the third-party software in the executable. */
import { OperatorError } from '../../base/operator-error.ts';
import { readLicenses } from '../runtime/assets.ts';
import { commandWithoutVault } from '../runtime/command.ts';

export const licensesCommand = commandWithoutVault({
  name: 'licenses',
  description: 'Print the licenses of the vault and its dependencies',
  examples: [{ does: 'Read all licenses', line: 'vault licenses | less' }],
  options: {},
  run: async (_, { stdout }) => {
    const text = readLicenses();
    if (text === undefined) {
      throw new OperatorError('no licenses found; the build collects them', {
        hint: 'Fix: npm run build',
      });
    }
    stdout.write(text);
  },
});
