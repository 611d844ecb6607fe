/**
 * Loaded before a program with `--import`: kills it (SIGKILL) when it reads the clock for the KILL_AT_LOOK-th time,
 * counted from 1. The vault reads the clock at each of its changes. A program that exits normally read it less often.
 */
const { KILL_AT_LOOK = '' } = process.env;
let left = Number(KILL_AT_LOOK);

const { now } = Date;
Date.now = () => {
  if (--left === 0) process.kill(process.pid, 'SIGKILL');
  return now();
};
