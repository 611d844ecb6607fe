/** A link to the page of a host. */

export function HostLink({ host }: { readonly host: string }) {
  // The path of a page needs a name.
  if (host === '') return <span class="quiet">without a name</span>;
  return <a href={`/fleet/${encodeURIComponent(host)}`}>{host}</a>;
}
