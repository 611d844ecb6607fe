/**
 * The few things that most functions of the domain work with, under names. The vault has them all; a function takes the
 * smallest of them that suffices, and a room whose functions need more has a context of its own.
 */
import type { KeyedMutex } from '../base/keyed-mutex.ts';
import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Keyring } from '../crypto/secrets/keyring.ts';
import type { Database } from '../db/database.ts';

/** Clock, sleep and randomness. Functions that write in the caller's transaction take this, and no database. */
export type WorldContext = { readonly world: World };

export type LogContext = { readonly log: Log };

export type DatabaseContext = { readonly db: Database };

/** The database, and when it is. */
export type TimedContext = DatabaseContext & WorldContext;

/** What runs in the background: it waits, and logs what goes wrong. */
export type LoggedContext = TimedContext & LogContext;

/** Opens what is sealed. */
export type KeyringContext = { readonly keyring: Keyring };

/** Opens secrets, and seals new ones. */
export type SealingContext = KeyringContext & WorldContext;

/** Stores secrets and reads them. */
export type SecretsContext = DatabaseContext & SealingContext;

/** One registration per issuer and one change per DNS record at a time. */
export type TurnsContext = { readonly turns: KeyedMutex };
