/** The ACME server with acme4j, the library that programs in Java use. */
import { acme4j } from '../harness/acme/programs/acme4j.ts';
import { testLives } from '../harness/acme/programs/life.ts';

testLives([acme4j]);
