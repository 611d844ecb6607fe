/** The first sign-in of a process loads the JWT library, and must not hold the database's write lock while it does. */
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { test } from 'node:test';
import { makeAdministrator, signIn } from '../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';

test('the first sign-in loads the JWT library before its write transaction', async (t) => {
  const server = await testServer(t);
  await makeAdministrator(server.vault, 'alice');
  const { db } = server.vault;
  const write = db.write.bind(db);
  let writing = 0;
  t.mock.method(db, 'write', async (work: Parameters<typeof write>[0]) => {
    writing += 1;
    return write(work).finally(() => {
      writing -= 1;
    });
  });
  const loaded: string[] = [];
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === 'jsonwebtoken') loaded.push(writing === 0 ? 'outside' : 'in a transaction');
      return next(specifier, context);
    },
  });
  t.after(() => hooks.deregister());
  await signIn(server, 'alice');
  assert.deepEqual(loaded, ['outside']);
});
