// Reads resources as JSON from standard input; says for each what its own definition has against it.
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const places = {
  "keda.sh/v1alpha1": "keda/keda.sh/v1alpha1",
  "monitoring.coreos.com/v1": "prometheus-operator/monitoring.coreos.com/v1",
  "gateway.networking.k8s.io/v1": "gateway-api/gateway.networking.k8s.io/v1",
};
let failed = 0;
for (const resource of JSON.parse(readFileSync(0))) {
  const stem = `${process.argv[2]}/node_modules/@kubernetes-models/${places[resource.apiVersion]}/${resource.kind}`;
  const module = await import(pathToFileURL(existsSync(`${stem}.mjs`) ? `${stem}.mjs` : `${stem}.js`));
  const Kind = module[resource.kind] ?? module.default[resource.kind];
  try {
    new Kind(resource).validate();
    console.log(`valid ${resource.kind}`);
  } catch (error) {
    failed = 1;
    console.log(`${resource.kind}: ${error.message}`);
  }
}
process.exit(failed);
