/** `vault licenses`: under which licences the vault is, and everything by others that is in the executable. */
import { OperatorError } from '../../base/operator-error.ts';
import { readLicenses } from '../runtime/assets.ts';
import { commandWithoutVault } from '../runtime/command.ts';

export const licensesCommand = commandWithoutVault({
  name: 'licenses',
  description: 'print the licences of the vault and of all that is in it',
  examples: [{ does: 'Read all licences', line: 'vault licenses | less' }],
  options: {},
  run: async (_, { stdout }) => {
    const text = readLicenses();
    if (text === undefined) {
      throw new OperatorError('the licences are gathered when the executable is built', {
        hint: 'Run "npm run build" first.',
      });
    }
    stdout.write(text);
  },
});
