/** Hosts from deployments: one row each with its worst state and its last report, the order, search and filter. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { DeploymentState } from '../../../assets/console/data/shapes.ts';
import {
  countsOf,
  countsText,
  deploymentStates,
  filteredDeployments,
  filteredHosts,
  hostsOf,
  hostsText,
  jobsText,
  sortedDeployments,
} from '../../../assets/console/fleet/hosts.ts';
import { deployment } from './deployment.ts';

/** One job on this host in each of these states. */
function jobs(host: string, ...states: readonly DeploymentState[]) {
  return states.map((state, index) =>
    deployment({ host, state, id: `${host}.${index}`, job: `job-${index}` }),
  );
}

suite('hosts of deployments', () => {
  test('a host has all its jobs, wherever they are in the list', () => {
    const [web1, web2] = hostsOf([
      ...jobs('web1', 'current'),
      ...jobs('web2', 'current'),
      ...jobs('web1', 'current', 'current'),
    ]);
    assert.deepEqual([web1?.name, web1?.jobs.length, web2?.name, web2?.jobs.length], ['web1', 3, 'web2', 1]);
    assert.deepEqual(hostsOf([]), []);
  });

  const worst: readonly (readonly [DeploymentState[], DeploymentState])[] = [
    [['current', 'current'], 'current'],
    [['current', 'outdated', 'current'], 'outdated'],
    [['outdated', 'silent'], 'silent'],
    [['silent', 'outdated', 'failing', 'current'], 'failing'],
  ];
  for (const [states, state] of worst) {
    test(`the state of a host with ${states.join(' and ')} jobs is ${state}`, () => {
      assert.equal(hostsOf(jobs('web1', ...states))[0]?.worst, state);
    });
  }

  test('the last word of a host is the latest report of its jobs, with or without fractions of a second', () => {
    const lists = [
      ['2026-11-29T03:17:04Z', '2026-11-30T03:17:04Z', '2026-11-28T03:17:04Z'],
      ['2026-11-30T03:17:04.001Z', '2026-11-30T03:17:04Z'],
      ['2026-11-30T03:17:04Z', '2026-11-30T03:17:04.001Z'],
      ['2026-11-30T03:17:04.900Z', '2026-11-30T03:17:05Z', '2026-11-30T03:17:04.899Z'],
    ];
    const last = lists.map(
      (times) =>
        hostsOf(times.map((at, index) => deployment({ id: String(index), last_seen_at: at })))[0]?.lastSeen,
    );
    assert.deepEqual(last, [
      '2026-11-30T03:17:04Z',
      '2026-11-30T03:17:04.001Z',
      '2026-11-30T03:17:04.001Z',
      '2026-11-30T03:17:05Z',
    ]);
  });

  test('hosts that need attention come first, then by name as people count', () => {
    const hosts = hostsOf([
      ...jobs('web10', 'current'),
      ...jobs('web9', 'current'),
      ...jobs('z', 'outdated'),
      ...jobs('y', 'current', 'silent'),
      ...jobs('x', 'failing'),
      ...jobs('a', 'failing'),
    ]);
    assert.deepEqual(
      hosts.map(({ name }) => name),
      ['a', 'x', 'y', 'z', 'web9', 'web10'],
    );
  });
});

test('jobs are sorted by state, host, certificate and job', () => {
  const sorted = sortedDeployments([
    deployment({ id: '6', host: 'web10' }),
    deployment({ id: '5', host: 'web9', job: 'b' }),
    deployment({ id: '4', host: 'web9', job: 'a' }),
    deployment({ id: '3', host: 'web9', certificate: 'mail', job: 'z' }),
    deployment({ id: '2', host: 'web99', state: 'outdated' }),
    deployment({ id: '1', host: 'web99', state: 'failing' }),
  ]);
  assert.deepEqual(
    sorted.map(({ id }) => id),
    ['1', '2', '3', '4', '5', '6'],
  );
});

suite('a filter', () => {
  const deployments = [
    ...jobs('web1', 'current', 'failing'),
    ...jobs('web2', 'current'),
    deployment({
      host: 'mail',
      certificate: 'smtp',
      state: 'silent',
      destination: '/etc/postfix',
      job: 'post',
    }),
  ];
  const found: readonly (readonly [search: string, state: string, hosts: string, jobs: number])[] = [
    ['', '', 'web1 mail web2', 4],
    ['WEB1', '', 'web1', 2],
    ['  web1  web ', '', 'web1', 2],
    ['web1 smtp', '', '', 0],
    ['smtp', '', 'mail', 1],
    ['', 'failing', 'web1', 1],
    ['', 'silent', 'mail', 1],
    ['', 'outdated', '', 0],
    ['web2', 'failing', '', 0],
  ];
  for (const [search, state, names, count] of found) {
    test(`for "${search}" in the state "${state}" finds hosts and jobs`, () => {
      const hosts = filteredHosts(hostsOf(deployments), { search, state });
      assert.equal(hosts.map(({ name }) => name).join(' '), names);
      assert.equal(filteredDeployments(deployments, { search, state }).length, count);
    });
  }

  test('for current hosts leaves out those with another job in another state, and no job that is current', () => {
    const current = { search: '', state: 'current' };
    assert.deepEqual(
      filteredHosts(hostsOf(deployments), current).map(({ name }) => name),
      ['web2'],
    );
    assert.equal(filteredDeployments(deployments, current).length, 2);
  });

  test('for jobs looks at the destination and the job too', () => {
    const hosts = (search: string) =>
      filteredDeployments(deployments, { search, state: '' }).map(({ host }) => host);
    assert.deepEqual([hosts('postfix'), hosts('post smtp'), hosts('job-1')], [['mail'], ['mail'], ['web1']]);
  });

  test('for a state that does not exist finds nothing', () => {
    assert.deepEqual(filteredHosts(hostsOf(deployments), { search: '', state: 'broken' }), []);
  });
});

test('counts name the states from the worst on, without those that are absent', () => {
  assert.equal(countsText(countsOf([])), '');
  assert.equal(countsText(countsOf(jobs('web1', 'current', 'failing', 'current'))), '1 failing, 2 current');
  const all = jobs('web1', ...deploymentStates.toReversed());
  assert.equal(countsText(countsOf(all)), '1 failing, 1 silent, 1 outdated, 1 current');
  const many = { failing: 0, silent: 0, outdated: 0, current: 12_345 };
  assert.equal(countsText(many), `${(12_345).toLocaleString()} current`);
});

test('one job and one host are singular', () => {
  assert.deepEqual([jobsText(0), jobsText(1), jobsText(2)], ['0 jobs', '1 job', '2 jobs']);
  assert.deepEqual([hostsText(0), hostsText(1), hostsText(2)], ['0 hosts', '1 host', '2 hosts']);
  assert.equal(jobsText(10_000), `${(10_000).toLocaleString()} jobs`);
});
