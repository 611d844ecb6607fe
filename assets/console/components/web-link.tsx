/** A link to a page of others, or its address as text where it is no web page: the one place for what a CA or another server names. */
import { webAddress } from '../web-address.ts';

export function WebLink({ to, label = to }: { readonly to: string; readonly label?: string }) {
  const address = webAddress(to);
  if (address === undefined) return <span title={to}>{label === to ? to : `${label} (${to})`}</span>;
  return (
    <a href={address} target="_blank" rel="noreferrer">
      {label}
    </a>
  );
}
