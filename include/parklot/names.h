/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Names of hosts and services.
 *
 * The C library's resolver looks them up, as it is configured: files, DNS,
 * mDNS, LDAP.  A task of the library's calls it, and blocks its worker; the
 * caller waits as for I/O.  A call that gives up leaves the resolver at work,
 * and uses no argument any more.
 *
 * Nothing is handed over, nor waited for, where no name is to be looked up: for
 * an address as a number, or none, with a port as a number, or none.
 */
#ifndef PARKLOT_NAMES_H
#define PARKLOT_NAMES_H

#include "base.h"

#include <sys/socket.h>

PL_BEGIN_DECLS

struct addrinfo;

/**
 * pl_getaddrinfo() - getaddrinfo(3); the resolver blocks the task only
 * @node:    as there: a host's name or its address, or NULL
 * @service: as there: a service's name or its port, or NULL
 * @hints:   as there, or NULL
 * @list:    where to put the addresses, for freeaddrinfo(); NULL if the call
 *           fails
 * @eai:     where to put the resolver's error, EAI_*, for gai_strerror(); 0 if
 *           there is none, or the error is the library's; or NULL
 *
 * Return: 0; -ENXIO: the resolver found none, and @eai says why; -ENOMEM, and
 * EAI_MEMORY; an error of the system's, and EAI_SYSTEM.  With 0 in @eai:
 * -ETIMEDOUT, -EINTR, -ECANCELED; -EINVAL if @list is NULL; -ENOMEM, -EAGAIN.
 */
PL_API int pl_getaddrinfo(const char *node, const char *service,
			  const struct addrinfo *hints, struct addrinfo **list,
			  int *eai);
PL_API int pl_getaddrinfo_until(const char *node, const char *service,
				const struct addrinfo *hints,
				struct addrinfo **list, int *eai,
				uint64_t deadline_ns);

/**
 * pl_getnameinfo() - getnameinfo(3); the resolver blocks the task only
 * @addr:    an address of @len bytes
 * @host:    where to put the host's name, of @host_size bytes; or NULL
 * @service: where to put the service's name, of @service_size bytes; or NULL
 * @flags:   NI_*
 * @eai:     as above
 *
 * Return: as above; -EINVAL if @addr is NULL or longer than a struct
 * sockaddr_storage.
 */
PL_API int pl_getnameinfo(const struct sockaddr *addr, socklen_t len,
			  char *host, socklen_t host_size, char *service,
			  socklen_t service_size, int flags, int *eai);
PL_API int pl_getnameinfo_until(const struct sockaddr *addr, socklen_t len,
				char *host, socklen_t host_size, char *service,
				socklen_t service_size, int flags, int *eai,
				uint64_t deadline_ns);

PL_END_DECLS

#endif /* PARKLOT_NAMES_H */
