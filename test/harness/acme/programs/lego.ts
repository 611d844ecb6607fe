/** lego: it registers with the first order, and cannot deactivate its account. */
import { join } from 'node:path';
import { acmeRecipes } from '../../../../src/base/acme-recipes.ts';
import { needs } from '../../processes/missing-program.ts';
import { type AcmeProgram, linesFor, ran } from './program.ts';

export const lego: AcmeProgram = {
  name: 'lego',
  needs: () => needs('lego'),
  home: (dir, service) => {
    const run = (name: string, command: string) =>
      ran('sh', ['-c', linesFor(acmeRecipes.lego, service, name).replace(/ run$/, ` ${command}`)], dir);
    return {
      issue: (name) => run(name, 'run'),
      renew: (name) => run(name, 'renew --days 9999 --no-random-sleep'),
      revoke: (name) => run(name, 'revoke --keep'),
      certificate: (name) => join(dir, '.lego', 'certificates', `${name}.crt`),
    };
  },
};
