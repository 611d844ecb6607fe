/** The tab Endpoints of the page Fleet: what TLS servers really serve. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { type Endpoints, useEndpoints } from '../../data/endpoints.ts';
import { EndpointList } from '../../fleet/endpoint-list.tsx';
import { endpointCountsText, endpointsText } from '../../fleet/endpoint-order.ts';
import { EndpointDialog } from '../../forms/endpoint-dialog.tsx';

export function EndpointsTab() {
  const { data, error, reload } = useEndpoints('/endpoints?limit=1000');
  const [isAdding, setAdding] = useState(false);
  const add = (
    <Button look="primary" needs="operator" onClick={() => setAdding(true)}>
      Add endpoint
    </Button>
  );
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton lines={8} />}
      {data?.items.length === 0 && <NoEndpoints add={add} />}
      {data && data.items.length > 0 && (
        <>
          <div class="tab-head">
            <p>{summary(data)}</p>
            {add}
          </div>
          <EndpointList endpoints={data} />
        </>
      )}
      {isAdding && <EndpointDialog onClose={() => setAdding(false)} onDone={reload} />}
    </>
  );
}

/** Says that all endpoints are current only once all are loaded. */
function summary({ items, isWhole }: Endpoints): string {
  if (!isWhole) return `${endpointsText(items.length)} loaded so far…`;
  if (items.some(({ state }) => state !== 'current'))
    return `${endpointsText(items.length)}: ${endpointCountsText(items)}.`;
  return items.length === 1 ? '1 endpoint, current.' : `All ${endpointsText(items.length)} are current.`;
}

function NoEndpoints({ add }: { readonly add: ComponentChildren }) {
  return (
    <Empty title="No endpoints yet" actions={add}>
      <p>
        An endpoint is the address of a TLS server, such as www.example.com:443. The vault checks every hour
        and after each renewal which certificate is really served there, and whether clients accept it.
      </p>
      <p>
        The tab Deployments of a certificate suggests endpoints from its names. You can also add endpoints
        with certificates from elsewhere, to be warned before they expire.
      </p>
    </Empty>
  );
}
