/** The ACME clients of others that the server is tried with, as each is used by its manual. */

import { acme4j } from './acme4j.ts';
import { certbot } from './certbot.ts';
import { acmetool, dehydrated, uacme } from './debian.ts';
import { lego } from './lego.ts';
import type { AcmeProgram } from './program.ts';

export const acmePrograms: readonly AcmeProgram[] = [certbot, lego, dehydrated, uacme, acmetool, acme4j];
