/** The ACME server with the clients that others wrote: a whole life of certificates and accounts with each. */

import { testLives } from '../harness/acme/programs/life.ts';
import { acmePrograms } from '../harness/acme/programs/programs.ts';

// Java takes its time, in a file of its own.
testLives(acmePrograms.filter(({ name }) => name !== 'acme4j'));
