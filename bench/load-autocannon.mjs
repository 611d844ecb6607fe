/**
 * Generates load with autocannon if wrk is not installed. The argument names the plan file; the result is the last
 * line.
 */
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';

const { url, requests, seconds, pauseMs, connections } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
let begun = 0;
const result = await autocannon({
  url,
  connections,
  duration: seconds,
  ...(pauseMs !== undefined && { overallRate: Math.round((connections / (pauseMs + 1)) * 1000) }),
  // Each connection starts at a different request.
  setupClient: (client) => {
    const first = Math.floor((begun * requests.length) / connections);
    begun += 1;
    client.setRequests(
      [...requests.slice(first), ...requests.slice(0, first)].map((each) => ({ ...each, method: 'GET' })),
    );
  },
});
const { errors, timeouts, latency, duration } = result;
const answered = result.requests.total;
console.log(
  JSON.stringify({
    perSecond: answered / duration,
    requests: answered,
    median: latency.p50,
    p99: latency.p99,
    refused: result['4xx'] + result['5xx'],
    failed: errors + timeouts,
  }),
);
