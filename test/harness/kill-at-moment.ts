/**
 * Loaded before a program with `--import`: kills it (SIGKILL) when it looks at the clock for the so-manieth time, which the
 * vault does at each of its changes. KILL_AT_LOOK is the number, counted from 1; whoever ends by itself looked less often.
 */
const { KILL_AT_LOOK = '' } = process.env;
let left = Number(KILL_AT_LOOK);

const { now } = Date;
Date.now = () => {
  if (--left === 0) process.kill(process.pid, 'SIGKILL');
  return now();
};
