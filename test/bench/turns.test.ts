/** Executables under measurement take turns (bench/turns.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byTurns, type Turn } from '../../bench/turns.ts';

function worker(name: string, rounds: number, done: string[]): (turn: Turn) => Promise<string> {
  return async (turn) => {
    for (let round = 1; round <= rounds; round += 1) {
      if (round > 1) await turn();
      done.push(`${name}${round} begins`);
      await new Promise(setImmediate);
      done.push(`${name}${round}`);
    }
    return name;
  };
}

test('two measurements alternate, and the longer one continues alone', async () => {
  const done: string[] = [];
  assert.deepEqual(await byTurns([worker('a', 2, done), worker('b', 4, done)]), ['a', 'b']);
  const rounds = ['a1', 'b1', 'a2', 'b2', 'b3', 'b4'];
  assert.deepEqual(
    done,
    rounds.flatMap((round) => [`${round} begins`, round]),
  );
});

test('a failure ends the other measurement at its next turn', async () => {
  const done: string[] = [];
  const failing = async () => {
    throw new Error('the server exited');
  };
  await assert.rejects(byTurns([worker('a', 3, done), failing]), { message: 'the server exited' });
  assert.deepEqual(done, ['a1 begins', 'a1']);
});
