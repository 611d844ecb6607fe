/** The thread of `vault serve` that writes to the database. `cli/runtime/writer-thread.ts` starts it. */
import { availableParallelism } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { realWorld } from './base/world.ts';
import { IntegrityKey } from './crypto/secrets/integrity-key.ts';
import { WritingThread } from './db/sqlite/writing-thread.ts';

if (parentPort === null) throw new Error('this file is the script of a thread');
new WritingThread(parentPort, realWorld, availableParallelism(), (secret) => new IntegrityKey(secret));
