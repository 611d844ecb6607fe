/** Deleted certificates over HTTP: administrators list, restore and purge them; clients see nothing of them. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate } from '../../../harness/http/fixtures.ts';

type Deleted = { id: number; name: string; deleted_by: string };
type Restored = { certificate: { name: string; status: string }; lost_issuer: null; api_keys: object[] };

const list = '/api/v1/deleted-certificates';
const certificates = '/api/v1/certificates';

suite('deleted certificates', () => {
  test('are listed page by page and restored, unless the name is taken', async (t) => {
    const { server, expect } = await administration(t);
    assert.deepEqual(await expect(200, 'GET', list), []);
    for (const name of ['one', 'two']) {
      await makeCertificate(server.vault, name);
      await expect(204, 'DELETE', `${certificates}/${name}`);
      await expect(404, 'GET', `${certificates}/${name}`);
    }
    const [first, ...rest] = await expect<Deleted[]>(200, 'GET', `${list}?limit=1`);
    assert.deepEqual([first?.name, first?.deleted_by, rest], ['one', 'admin:alice', []]);
    const [second] = await expect<Deleted[]>(200, 'GET', `${list}?after=${first?.id}`);
    assert.equal(second?.name, 'two');

    const restored = await expect<Restored>(200, 'POST', `${list}/${first?.id}/restore`, {});
    assert.deepEqual([restored.certificate.name, restored.lost_issuer, restored.api_keys], ['one', null, []]);
    await expect(404, 'POST', `${list}/${first?.id}/restore`, {});
    await makeCertificate(server.vault, 'two');
    const taken = await expect<{ code: string }>(409, 'POST', `${list}/${second?.id}/restore`, {});
    assert.equal(taken.code, 'certificate_exists');
    await expect(400, 'POST', `${list}/${second?.id}/restore`, { name: '..' });
    const renamed = await expect<Restored>(200, 'POST', `${list}/${second?.id}/restore`, { name: 'three' });
    assert.equal(renamed.certificate.name, 'three');
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.undelete').map(({ actor, resource }) => [actor, resource]),
      [
        ['admin:alice', 'certificate:one'],
        ['admin:alice', 'certificate:three'],
      ],
    );
  });

  test('return 404 once they are purged', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'gone');
    await expect(204, 'DELETE', `${certificates}/gone`);
    const [deleted] = await expect<Deleted[]>(200, 'GET', list);
    await expect(204, 'DELETE', `${list}/${deleted?.id}`);
    for (const id of [deleted?.id, 'x', '0']) {
      await expect(404, 'DELETE', `${list}/${id}`);
      await expect(404, 'POST', `${list}/${id}/restore`, {});
    }
    assert.equal(eventsOf(server.dataDir, 'certificate.purge').length, 1);
  });
});
