#!/bin/sh
# Commands of rack_tool on a gateway: upgrade the release, set the log target.
set -eu
command=$1
shift
if [ "$command" = upgrade ]; then
    if [ -e /etc/gateway-fails ]; then
        echo "the standby image cannot be written" >&2
        exit 1
    fi
    sed -i "s/versions=[^ ]*/versions=$1/" /etc/virm-agent/*.conf
    systemctl restart 'virm-agent@*'
fi
if [ "$command" = logging-server ]; then
    echo "*.* @$2:$3" >/etc/rsyslog.d/10-logging-server.conf
    systemctl restart rsyslog
fi
