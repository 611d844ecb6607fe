/** Hosts in a sentence, as links to their pages. */

import { HostLink } from './host-link.tsx';

/** More names are in the list of hosts. */
const mostNames = 5;

/** "web1, web2, web3, web4 and 12 more". */
export function HostNames({ hosts }: { readonly hosts: readonly string[] }) {
  const shown = hosts.length > mostNames ? hosts.slice(0, mostNames - 1) : hosts;
  const hidden = hosts.length - shown.length;
  return (
    <>
      {shown.map((host, index) => (
        <span key={host}>
          {index > 0 && ', '}
          <HostLink host={host} />
        </span>
      ))}
      {hidden > 0 && ` and ${hidden.toLocaleString()} more`}
    </>
  );
}
