/** Pools of connections to servers of tests, closed with the test. */
import type { TestContext } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { ConnectionPool, type PoolOptions } from '../../../src/db/postgres/connection-pool.ts';
import { parseConnectionUrl } from '../../../src/db/postgres/connection-url.ts';

/** A pool for the URL, which sees nothing of the environment's own settings. */
export function testPool(
  t: Pick<TestContext, 'after'>,
  url: string,
  options: Omit<Partial<PoolOptions>, 'url'> & { environment?: Record<string, string> } = {},
): ConnectionPool {
  const { environment = {}, ...rest } = options;
  const pool = new ConnectionPool({
    url: parseConnectionUrl(url, { environment }),
    world: realWorld,
    ...rest,
  });
  t.after(() => pool.close());
  return pool;
}
