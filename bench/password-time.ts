/** Hashes a password as often as the first argument says, and prints the milliseconds as JSON. */
import { Secret } from '../src/base/secret.ts';
import { realWorld } from '../src/base/world.ts';
import { hashPassword, passwordMatches } from '../src/crypto/secrets/password-hash.ts';

const password = new Secret('correct horse battery bench');
const hash = await hashPassword(realWorld, password);
const times: number[] = [];
for (let round = 0; round < Number(process.argv[2]); round += 1) {
  const started = performance.now();
  if (!(await passwordMatches(password, hash))) throw new Error('password does not match');
  times.push(performance.now() - started);
}
console.log(JSON.stringify(times));
