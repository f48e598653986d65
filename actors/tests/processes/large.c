/* A listener with much memory: the kernel frees that before it closes the socket, so it takes a while to end. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const size_t MEMORY = (size_t)256 << 20;

int main(int count, char **arguments)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *memory = malloc(MEMORY);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (count != 2 || memory == NULL || strlen(arguments[1]) >= sizeof address.sun_path)
        return 1;
    memset(memory, 1, MEMORY);
    strcpy(address.sun_path, arguments[1]);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0)
        return 1;
    for (;;)
        pause();
}
