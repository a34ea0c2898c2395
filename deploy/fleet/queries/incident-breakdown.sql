-- Where the vCPU's time went in one incident, in ms by state.
-- incident_id is a variable: Grafana replaces it by the id, in which all but letters, digits and -_.~ is encoded.
SELECT coalesce(breakdown_ns['guest'], 0) / 1e6 AS guest, coalesce(breakdown_ns['kvm'], 0) / 1e6 AS kvm,
	coalesce(breakdown_ns['vmm'], 0) / 1e6 AS vmm, coalesce(breakdown_ns['runnable'], 0) / 1e6 AS runnable,
	coalesce(breakdown_ns['halted'], 0) / 1e6 AS halted, coalesce(breakdown_ns['blocked'], 0) / 1e6 AS blocked,
	coalesce(breakdown_ns['throttled'], 0) / 1e6 AS throttled, coalesce(breakdown_ns['stopped'], 0) / 1e6 AS stopped,
	coalesce(breakdown_ns['unknown'], 0) / 1e6 AS unknown
FROM distinct_incidents WHERE incident_id = '${incident_id:percentencode}';
