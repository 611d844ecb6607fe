/** The ACME clients of others that the server is tried with, as each is used by its manual. */
import type { AcmeProgram } from './acme-program.ts';
import { acme4j } from './acme-programs-acme4j.ts';
import { certbot } from './acme-programs-certbot.ts';
import { acmetool, dehydrated, uacme } from './acme-programs-debian.ts';
import { lego } from './acme-programs-lego.ts';

export const acmePrograms: readonly AcmeProgram[] = [certbot, lego, dehydrated, uacme, acmetool, acme4j];
