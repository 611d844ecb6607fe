/** Certificates of ACME clients on the command line: shown with their owner, left to it, and left out of an export. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import { realWorld } from '../../../../src/base/world.ts';
import { issueOwned } from '../../../harness/acme/owned-certificate.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { testVault } from '../../../harness/test-vault.ts';

suite('a certificate of an ACME client', () => {
  test('is listed with its client, cannot be renewed or updated, and is not exported', async (t) => {
    const line = commandLine(t);
    await line.done(...commandWords('certificate create --name own --domain own.example.com'));
    const { vault, close } = await testVault(t, { dataDir: line.data, world: realWorld });
    await issueOwned(vault, ['www.example.com']);
    await close();
    const list = (await line.done('certificate', 'list')).stdout.split('\n');
    assert.match(list[0] ?? '', /^NAME +STATUS +EXPIRES IN +ISSUER +ACME CLIENT +VERSION +DOMAINS$/);
    assert.match(list[1] ?? '', /^own +valid .* local-ca +- +1 +own\.example\.com$/);
    assert.match(list[2] ?? '', /^www\.example\.com +valid .* local-ca +web +1 +www\.example\.com$/);
    const show = (await line.done('certificate', 'show', '--name', 'www.example.com')).stdout;
    assert.match(show, /^ACME client +web$/m);
    assert.match(show, /^Renewal +by its ACME client$/m);
    assert.match(show, /^Private key +held by the client; issued for its CSR$/m);
    const refusal =
      /Certificate "www\.example\.com" belongs to the ACME client "web", which renews and changes it\.\n.*Renew or change it on the machine where the client runs/;
    await line.refused(commandWords('certificate renew --name www.example.com'), refusal);
    await line.refused(commandWords('certificate update --name www.example.com --auto-renew'), refusal);
    const exported = (await line.done('export')).stdout;
    assert.match(exported, /own\.example\.com/);
    assert.doesNotMatch(exported, /www\.example\.com/);
    await line.done(...commandWords('certificate delete --name www.example.com'));
  });

  test('is a doctor finding with a hint about its client when it has expired', async (t) => {
    const line = commandLine(t);
    await line.done(...commandWords('certificate create --name own --domain own.example.com'));
    const { vault, close } = await testVault(t, { dataDir: line.data, world: realWorld });
    const { certificateId } = await issueOwned(vault, ['old.example.com']);
    await vault.db.write((writer) =>
      writer
        .updateTable('certificate_versions')
        .set({ not_after: realWorld.now() - day })
        .where('certificate_id', '=', certificateId)
        .execute(),
    );
    await issueOwned(vault, ['good.example.com'], { lifetime: 90 * day });
    await close();
    const findings = await line.run('doctor', '--json');
    const told = JSON.parse(findings.stdout) as {
      findings: { check: string; about?: string; hint?: string }[];
    };
    const about = told.findings.filter(({ check }) => check === 'certificate');
    assert.deepEqual(
      about.map((one) => one.about),
      ['old.example.com'],
    );
    assert.match(about[0]?.hint ?? '', /Its ACME client, web, renews it/);
  });
});
